// The statistics of the nodes of an online forest: those of a family, in one array.
//
// The kernel is a template over this and over `ClassLists`, which stores many classes differently:
//   clear, copy, add, scale   statistics of a node
//   log_evidence              of the rows of a node, if it is a leaf
//   average                   the prediction, from the shares of nodes in it
//   append                    all statistics of a share, those of no rows for the prior
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/families.hpp"
#include "online/nodes.hpp"

namespace everytree::online {

// A part of a row's predictive. Node -1 is the prior.
struct OnlineShare {
    std::int32_t node;
    double weight;
    double fraction;  // remaining fraction of the weight of the node's rows, which decay
};

template <class Family>
class DenseLeaves {
  public:
    DenseLeaves(const Family& family, const double* prior) : family_(family) { use(family, prior); }

    void use(const Family& family, const double* prior) {
        family_ = family;
        prior_ = prior;
        family_.tabulate(prior);
        parameters_.resize(static_cast<std::size_t>(family.n_parameters));
        expected_.resize(static_cast<std::size_t>(family.n_expected()));
    }
    void attach(const OnlineArrays& arrays) {
        statistics_ = arrays.statistics;
        stride_ = arrays.stride;
    }

    bool supports(const Row& row) const { return family_.supports(row); }
    int n_statistics() const { return family_.layout.size(); }
    int n_expected() const { return family_.n_expected(); }

    void clear(std::int32_t s) { std::fill_n(at(s), stride_, 0.0); }
    void copy(std::int32_t from, std::int32_t to) { std::copy_n(at(from), stride_, at(to)); }
    void add(std::int32_t s, const Row& row) { family_.add(at(s), row); }
    void scale(std::int32_t s, double factor) { family_.layout.scale(at(s), factor); }
    double log_evidence(std::int32_t s) { return family_.log_evidence(at(s), prior_); }

    void average(const std::vector<OnlineShare>& shares, double* out) {
        for (const OnlineShare& share : shares) {
            family_.posterior(statistics_of(share), prior_, parameters_.data());
            family_.expected(parameters_.data(), expected_.data());
            for (std::size_t c = 0; c < expected_.size(); ++c) out[c] += share.weight * expected_[c];
        }
    }
    void append(const OnlineShare& share, std::vector<double>& out) {
        const double* mine = statistics_of(share);
        out.insert(out.end(), mine, mine + n_statistics());
    }

  private:
    double* at(std::int32_t s) const { return statistics_ + s * stride_; }

    const double* statistics_of(const OnlineShare& share) {
        if (share.node >= 0 && share.fraction == 1.0) return at(share.node);
        present_.assign(static_cast<std::size_t>(n_statistics()), 0.0);
        if (share.node >= 0) {
            std::copy_n(at(share.node), n_statistics(), present_.begin());
            family_.layout.scale(present_.data(), share.fraction);
        }
        return present_.data();
    }

    Family family_;
    const double* prior_ = nullptr;
    double* statistics_ = nullptr;
    std::int64_t stride_ = 0;
    std::vector<double> present_, parameters_, expected_;
};

}  // namespace everytree::online
