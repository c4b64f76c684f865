package dropin

import (
	"math"
	"strconv"
	"strings"
)

// This file has what Java prints for the tools that are written in it.

// JavaDouble formats a number as Java formats a double: always with a point, and with
// an exponent below a thousandth and from ten million on.
func JavaDouble(x float64) string {
	switch abs := math.Abs(x); {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 0):
		return strings.TrimPrefix(strconv.FormatFloat(x, 'f', -1, 64), "+") + "inity"
	case x == 0:
		return "0.0"
	case abs >= 1e-3 && abs < 1e7:
		return withFraction(strconv.FormatFloat(x, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(exponent)
	return withFraction(mantissa) + "E" + strconv.Itoa(n)
}

// withFraction appends .0 to a number without a decimal point.
func withFraction(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	return s + ".0"
}

// An Exception is an error that the JVM prints for a tool, without the stack.
type Exception struct {
	Class, Text string // text: "" for none
	Hint        string // carronade's, on a line of its own; "" for none
}

func (e *Exception) Error() string {
	line := `Exception in thread "main" ` + e.Class
	if e.Text != "" {
		line += ": " + e.Text
	}
	if e.Hint != "" {
		line += "\n(" + e.Hint + ")"
	}
	return line
}
