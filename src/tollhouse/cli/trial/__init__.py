"""What `tollhouse up` starts, `tollhouse down` stops and `tollhouse reset` takes away."""
