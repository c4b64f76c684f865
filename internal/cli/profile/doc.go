// Package profile has the command profile: it reads a sample of real traffic, fits a workload to it,
// and prints the workload as a file. How traffic is fitted is in the package internal/profile.
package profile
