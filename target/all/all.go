// Package all lists the kinds of target that the carronade program has. A
// program with others has a main of its own and lists them there.
package all

import (
	"carronade/target"
	"carronade/target/apm"
	"carronade/target/kafka"
	"carronade/target/null"
	"carronade/target/riemann"
)

// Kinds returns them, the most wanted first.
func Kinds() []target.Kind {
	return []target.Kind{kafka.Kind{}, riemann.Kind{}, apm.Kind{}, null.Kind{}}
}
