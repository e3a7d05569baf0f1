"""`python -m dlrover.trainer.torch.main` is dlrover-run."""

from troupe_dlrover_names.run import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
