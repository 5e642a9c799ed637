"""The command line: tables in files become models in files, predictions and pages, without writing Python.

`app` has the commands, each a few lines over one module: `tables` (files to rows: all of them, or part by part), `rows`
(where they came from, targets and weights), `models` (model files and what is remembered in them), `fitting`,
`updating`, `predicting`, `explaining`, `showing`, `judging` and `writing`.
What a user did wrong is a `UserError`, one sentence without a traceback, in the words of options where the library
speaks of arguments (`problems`); `running` turns it into an exit code.
"""
