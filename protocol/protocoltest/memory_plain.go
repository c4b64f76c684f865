//go:build !race

package protocoltest

// memoryFactor is 1 without the race detector.
const memoryFactor = 1
