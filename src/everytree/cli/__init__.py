"""The command line: tables in files become models in files, predictions and pages, without writing Python.

`app` has the commands, each a few lines over one room: `tables` and `writing` (files to tables and back, by `formats`
and `text`), `models` (model files and what is remembered in them), `fitting`, `updating`, `predicting`, `showing` and
`timing`. What a user did wrong is a `UserError`, one sentence without a traceback, in the words of options where the
library speaks of arguments (`wording`); `running` turns it into an exit code.
"""
