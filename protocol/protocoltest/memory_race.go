//go:build race

package protocoltest

// memoryFactor is how much more memory the race detector allows a connection: goroutines
// and what they share take more.
const memoryFactor = 1.5
