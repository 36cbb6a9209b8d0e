"""The container image: built by buildah, run by podman, with a line of evidence for each run."""
