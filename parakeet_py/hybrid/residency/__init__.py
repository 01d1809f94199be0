"""Where the bytes of arrays are, and arrays that live on devices."""
