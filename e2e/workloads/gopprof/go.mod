module flamefleet.dev/e2e/gopprof

go 1.25
