//go:build !race

package targettest

// memoryFactor is 1 without the race detector.
const memoryFactor = 1
