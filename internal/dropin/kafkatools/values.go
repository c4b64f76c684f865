package kafkatools

import (
	"math"
	"strconv"
)

// A valueKind is the kind of value that an option of a tool takes.
type valueKind uint8

const (
	textValue     valueKind = iota
	integerValue            // of 32 bits
	longValue               // of 64 bits
	fractionValue           // a number
	listValue               // one or more texts
	noValue
	optionalText // text, or no value
	optionalInteger
	optionalLong
)

// javaKinds are Java's names of the kinds, as the tools print them.
var javaKinds = [...]string{
	textValue: "String", integerValue: "Integer", longValue: "Long", fractionValue: "Double", listValue: "String",
	optionalText: "String", optionalInteger: "Integer", optionalLong: "Long",
}

// optional reports whether the value may be left out.
func (k valueKind) optional() bool { return k >= optionalText }

// whole reads a value as a whole number of the kind's size.
func (k valueKind) whole(value string) (int64, error) {
	if k == integerValue || k == optionalInteger {
		return strconv.ParseInt(value, 10, 32)
	}
	return strconv.ParseInt(value, 10, 64)
}

// check returns an error if a value does not have the kind.
func (k valueKind) check(value string) error {
	switch k {
	case integerValue, longValue, optionalInteger, optionalLong:
		_, err := k.whole(value)
		return err
	case fractionValue:
		x, err := strconv.ParseFloat(value, 64)
		if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return strconv.ErrRange
		}
		return err
	}
	return nil
}
