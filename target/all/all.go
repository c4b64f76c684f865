// Package all lists the kinds of target of the carronade program. A program with
// other kinds has a separate main package and lists them there.
package all

import (
	"carronade/target"
	"carronade/target/apm"
	"carronade/target/kafka"
	"carronade/target/null"
	"carronade/target/riemann"
)

// Kinds returns the kinds, the most used first.
func Kinds() []target.Kind {
	return []target.Kind{kafka.Kind{}, riemann.Kind{}, apm.Kind{}, null.Kind{}}
}
