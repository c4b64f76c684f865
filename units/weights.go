package units

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostWeight is the largest weight.
const mostWeight = 1_000_000

// ParseWeights reads "word=N,word=N" into the weights of words, by their places; a word without =N has the weight
// 1. Weights of words that are not given, and all of an empty text, stay as they are.
func ParseWeights(s string, words []string, to []int) error {
	if s == "" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		word, weight, weighed := strings.Cut(strings.TrimSpace(part), "=")
		i := slices.Index(words, word)
		if i < 0 {
			return fmt.Errorf("%q: want one of %s", word, strings.Join(words, ", "))
		}
		n := 1
		if weighed {
			var err error
			if n, err = strconv.Atoi(weight); err != nil || n < 0 || n > mostWeight {
				return fmt.Errorf("%q: a weight is a whole number, 0 to 1,000,000", part)
			}
		}
		to[i] = n
	}
	return nil
}
