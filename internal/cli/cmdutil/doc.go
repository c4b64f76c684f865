// Package cmdutil has what every command needs: flags that are settings of a workload, hints, exit codes,
// the console, and files that are written whole or not at all.
package cmdutil
