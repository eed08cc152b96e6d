"""What all folders may use, without IR: arrays, remarks, threads, the disk cache."""
