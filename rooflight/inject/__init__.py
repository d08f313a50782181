"""What runs inside somebody's training process.

`rooflight-agent run -- python train.py` puts this folder first on the PYTHONPATH of the program that it
starts: its modules may use the standard library and the program's own torch, nothing else, and whatever goes
wrong in them must not reach the program.
"""
