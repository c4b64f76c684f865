// Package profiling is the command profile: it reads a sample of real traffic, fits a workload
// to it, and prints the workload as a file. What recorded traffic looks like, what is fitted to
// it, and how, is in package traffic. This package turns fitted parameters into settings. No key,
// value of a record or value of a header gets into what it prints, unless samples were requested.
package profiling
