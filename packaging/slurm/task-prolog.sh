#!/bin/bash
# slurm.conf: TaskProlog=/etc/slurm/rooflight/task-prolog.sh
# What it prints becomes the environment of the tasks: they can be recorded, and know nothing of it.
if [ -d /run/rooflight ]; then
    echo "export KINETO_USE_DAEMON=1"
    echo "export KINETO_IPC_SOCKET_DIR=/run/rooflight"
fi
exit 0
