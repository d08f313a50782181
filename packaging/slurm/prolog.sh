#!/bin/bash
# slurm.conf: Prolog=/etc/slurm/rooflight/prolog.sh
# Starts the agent on a node with its first job.  A prolog that fails drains the node: this one never does.
jobs=${ROOFLIGHT_JOBS:-/run/rooflight-jobs}
if mkdir -p "$jobs" && touch "$jobs/${SLURM_JOB_ID:-unknown}"; then
    timeout 10 systemctl start --no-block rooflight-agent.service
fi
exit 0
