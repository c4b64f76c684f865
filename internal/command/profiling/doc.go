// Package profiling is the command profile: it reads a sample of real traffic, fits a workload
// to it, and prints the workload as a file. What is fitted, and how, is in package fit; what
// recorded traffic looks like in package capture. This package turns fitted parameters into
// settings. No key, value of a record or value of a header gets into what it prints, unless
// samples were requested.
package profiling
