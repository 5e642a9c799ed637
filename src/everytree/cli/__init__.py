"""The command line: tables in files become models in files, predictions and pages, without writing Python.

`app` has the commands, each a few lines over one module: `reading` and `writing` (files to tables and back), `tables`
(rows, and where they came from), `models` (model files and what is remembered in them), `fitting`, `long_tables` (more
rows than `memory` holds), `updating`, `predicting`, `showing` and `timing`. What a user did wrong is a `UserError`, one
sentence without a traceback, in the words of options where the library speaks of arguments (`problems`); `running`
turns it into an exit code.
"""
