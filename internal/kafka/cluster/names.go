package cluster

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"carronade/protocol"
	"carronade/units"
)

// mostTopics bounds the topics of a target. A client keeps a few hundred bytes for each partition.
const mostTopics = 200_000

// parseTopicNames reads the topics of a target: names with commas between them, in which {0..99} stands
// for each number of a range. A number that begins with 0 gives all numbers of the range its width, as
// in a shell.
func parseTopicNames(text string) (names []string, err error) {
	bad := func(err error) error {
		return &protocol.Error{
			Doing: fmt.Sprintf("read the topics %q", text), Err: err,
			Hint: "give names with commas between them, or a range: kafka://host:9092/orders-{0..99}",
		}
	}
	seen := map[string]bool{}
	for word := range strings.SplitSeq(text, ",") {
		some, err := expandRanges(word, mostTopics-len(names))
		if err != nil {
			return nil, bad(err)
		}
		for _, name := range some {
			if err := CheckTopic(name); err != nil {
				return nil, err
			}
			if seen[name] {
				return nil, bad(fmt.Errorf("it has %s twice", name))
			}
			seen[name] = true
		}
		names = append(names, some...)
	}
	return names, nil
}

// expandRanges returns a name once for each number of its ranges; without a range, the name.
func expandRanges(word string, most int) ([]string, error) {
	before, rest, ok := strings.Cut(word, "{")
	if !ok {
		if strings.Contains(word, "}") {
			return nil, fmt.Errorf("%q has a } without a {", word)
		}
		if most < 1 {
			return nil, tooManyTopics()
		}
		return []string{word}, nil
	}
	inside, after, ok := strings.Cut(rest, "}")
	if !ok {
		return nil, fmt.Errorf("%q has a { without a }", word)
	}
	low, high, ok := strings.Cut(inside, "..")
	from, err := strconv.ParseUint(low, 10, 31)
	to, err2 := strconv.ParseUint(high, 10, 31)
	switch {
	case !ok || err != nil || err2 != nil:
		return nil, fmt.Errorf("{%s} is not a range of numbers, such as {0..99}", inside)
	case to < from:
		return nil, fmt.Errorf("the range {%s} ends before it begins", inside)
	case to-from >= uint64(max(0, most)):
		return nil, tooManyTopics()
	}
	width := 0
	if len(low) > 1 && low[0] == '0' || len(high) > 1 && high[0] == '0' {
		width = max(len(low), len(high))
	}
	var all []string
	for n := from; n <= to; n++ {
		some, err := expandRanges(before+fmt.Sprintf("%0*d", width, n)+after, most-len(all))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func tooManyTopics() error {
	return fmt.Errorf("it has more than %s topics", units.FormatCount(mostTopics))
}

// isCount reports whether the option topics is a number of topics, and not an expression.
func isCount(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// firstTopics returns the first topics of a target, as many as the option topics says, and a text that names them.
func firstTopics(names []string, text, option string) ([]string, string, error) {
	if !isCount(option) {
		return names, text, nil
	}
	n, err := strconv.Atoi(option)
	wrong := &protocol.Error{Doing: "read the option topics", Hint: "give a number from 1 to " + strconv.Itoa(len(names))}
	switch {
	case err != nil || n < 1:
		wrong.Err = fmt.Errorf("%s is not a number of topics", option)
		return nil, "", wrong
	case n > len(names):
		wrong.Err = fmt.Errorf("the target names %s, and not %d", units.Plural(len(names), "topic"), n)
		wrong.Hint = "name more, such as " + rangeOf(names[0], n)
		return nil, "", wrong
	case n < len(names):
		text = fmt.Sprintf("the first %d of %s", n, text)
	}
	return names[:n], text, nil
}

// rangeOf is a target's path with n topics whose names begin as one does.
func rangeOf(name string, n int) string {
	return fmt.Sprintf("%s-{0..%d}", strings.TrimRight(name, "-0123456789"), n-1)
}

// WithSuffix returns the path of a target with a suffix of each of its topics' names.
func WithSuffix(path, suffix string) string {
	names := strings.Split(cmp.Or(strings.Trim(path, "/"), defaultTopic), ",")
	for i := range names {
		names[i] += suffix
	}
	return "/" + strings.Join(names, ",")
}

// SetTopic makes a topic the only one.
func (c *Config) SetTopic(name string) { c.Topic, c.Names, c.topicText = name, []string{name}, name }

// TopicText names the topics in texts: as the target does.
func (c *Config) TopicText() string {
	if len(c.Names) > 1 {
		return c.topicText
	}
	return c.Topic
}
