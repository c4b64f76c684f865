package workload

import (
	"slices"

	"carronade/internal/advice"
)

// otherWords are other tools' words for settings.
var otherWords = map[string]string{
	"duration": "for",
	"requests": "count", "messages": "count", "records": "count",
	"qps": "rate", "rps": "rate", "throughput": "rate",
	"connections": "clients", "threads": "clients",
	"vus": "concurrency", "workers": "concurrency", "users": "concurrency", "in-flight": "concurrency",
	"num-records": "count", "num-messages": "count", "n": "count", "repetitions": "repeat", "runs": "repeat",
	"record-size": "size", "message-size": "size", "z": "for", "time": "for", "timeout": "request-timeout",
}

// NearestSetting returns the setting that other tools call so, or the most similar name; ""
// if none is close.
func NearestSetting(text string, names []string) string {
	if word := otherWords[text]; slices.Contains(names, word) {
		return word
	}
	return advice.Nearest(text, names)
}
