module flamefleet.dev/bench/gzippeers

go 1.25.0

require github.com/klauspost/compress v1.19.1
