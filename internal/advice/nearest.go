package advice

import (
	"slices"
	"strings"
)

// Nearest returns the most similar word of a list, "" if none is close: at most a third of its
// letters changed, swapped, missing or extra, or text is a prefix of at least three letters.
// Words of three letters are all similar, so for them only swapped, extra or missing letters
// count. Of equally similar words, one that begins with text comes first.
func Nearest(text string, among []string) string {
	if len(text) < 3 || len(text) > 64 {
		return "" // too short: everything would be similar; or too long to be a word
	}
	best, least := "", max(1, len([]rune(text))/3)+1
	for _, word := range among {
		d := distance([]rune(text), []rune(word))
		if len(text) == 3 && len(word) == 3 && sorted(text) != sorted(word) {
			continue
		}
		begins := len(word) > len(text) && word[:len(text)] == text
		if begins {
			d = 1
		}
		if d > 0 && (d < least || d == least && begins && !strings.HasPrefix(best, text)) {
			best, least = word, d
		}
	}
	return best
}

// sorted are the letters of a word in their order.
func sorted(word string) string {
	letters := []rune(word)
	slices.Sort(letters)
	return string(letters)
}

// distance is the optimal string alignment distance (Damerau-Levenshtein
// without repeated edits of a substring): insertions, deletions, replacements
// and swaps of neighbours.
func distance(a, b []rune) int {
	before := make([]int, len(b)+1)
	above := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = slices.Min([]int{above[j] + 1, row[j-1] + 1, above[j-1] + cost})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
