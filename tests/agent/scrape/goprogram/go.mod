module flamefleet.dev/flamefleet/tests/goprogram

go 1.21
