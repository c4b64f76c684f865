// Package classic is the language of mongoose's scenarios: JavaScript in sloppy mode with
// mongoose's types of steps as globals, and the few Java classes that its examples use. It is
// responsible for reading a script, for its objects and for its errors with their places. A step
// is a request to the scenario's host. The package does not know what a path of the configuration
// becomes, and does not run steps.
//
// Its invariant: nothing is guessed but what Read documents, and a guess is a warning with its
// line.
package classic
