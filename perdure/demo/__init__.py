"""The demo: a session runs, dies and resumes, on a real Temporal server, and its log proves it.

story       what happens, step by step
agent       who it happens to: an agent with a `script` (or a real model) and `tools` that work
            on the files of this `project`
crew        the worker processes, some of which are killed; `worker` is what runs in one
journal     what everybody involved notes down while it happens
checks      what the log and the journal must say in the end
telling     what you see; `lines` is how an entry is shown
folder      where it all is, and whether an earlier demo was interrupted there
show        all of it, from the server's start to the exit status
"""
