// Families known by what they do instead of by their type: kernels are compiled once for all of them.
#pragma once
#include <memory>
#include <utility>

#include "core/families.hpp"

namespace everytree {

// The members are those that core/families.hpp lists, each one virtual call away: cheap beside the gamma functions of
// the families that are called this way.
class AnyFamily {
    struct Methods {
        virtual ~Methods() = default;
        virtual bool supports(const Row& row) const = 0;
        virtual Complaint complain(const Row& row) const = 0;
        virtual void add(double* stat, const Row& row) const = 0;
        virtual void prepare(const double* hyper, double* prior) const = 0;
        virtual void posterior(const double* stat, const double* prior, double* parameters) const = 0;
        virtual double log_evidence(const double* stat, const double* prior) const = 0;
    };
    template <class Family>
    struct Of final : Methods {
        Family family;
        explicit Of(Family one) : family(std::move(one)) {}
        bool supports(const Row& row) const override { return family.supports(row); }
        Complaint complain(const Row& row) const override { return family.complain(row); }
        void add(double* stat, const Row& row) const override { family.add(stat, row); }
        void prepare(const double* hyper, double* prior) const override { family.prepare(hyper, prior); }
        void posterior(const double* stat, const double* prior, double* parameters) const override {
            family.posterior(stat, prior, parameters);
        }
        double log_evidence(const double* stat, const double* prior) const override {
            return family.log_evidence(stat, prior);
        }
    };

  public:
    static constexpr bool is_discrete = false;  // not known while compiling: nothing is concluded from it
    Layout layout;
    int n_extra, n_hyper, n_prior, n_parameters;

    template <class Family>
    explicit AnyFamily(Family family)
        : layout(family.layout),
          n_extra(family.n_extra),
          n_hyper(family.n_hyper),
          n_prior(family.n_prior),
          n_parameters(family.n_parameters),
          methods_(std::make_shared<const Of<Family>>(std::move(family))) {}

    bool supports(const Row& row) const { return methods_->supports(row); }
    Complaint complain(const Row& row) const { return methods_->complain(row); }
    void add(double* stat, const Row& row) const { methods_->add(stat, row); }
    void prepare(const double* hyper, double* prior) const { methods_->prepare(hyper, prior); }
    void posterior(const double* stat, const double* prior, double* parameters) const {
        methods_->posterior(stat, prior, parameters);
    }
    double log_evidence(const double* stat, const double* prior) const { return methods_->log_evidence(stat, prior); }

  private:
    std::shared_ptr<const Methods> methods_;
};

}  // namespace everytree
