package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"carronade/internal/serve/jobs"
	"carronade/internal/system"
)

const (
	// completeWithin bounds the time that a key waits for a list of reports, topics or branches.
	completeWithin = 2 * time.Second
	// mostShown are the completions that are shown at once.
	mostShown = 60
)

// autoComplete completes the line of a terminal. If several words fit and have nothing more in common, it
// shows them above the line.
func (s *session) autoComplete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' || pos != len(line) {
		return "", 0, false
	}
	begin := strings.LastIndexByte(line, ' ') + 1
	word := line[begin:]
	ctx, cancel := context.WithTimeout(s.ctx, completeWithin)
	defer cancel()
	all := s.completions(ctx, line[:begin], word)
	all = slices.DeleteFunc(all, func(a string) bool { return !strings.HasPrefix(a, word) || a != Printable(a) })
	slices.Sort(all)
	all = slices.Compact(all)
	switch {
	case len(all) == 0:
		return "", 0, false
	case len(all) == 1 && !strings.HasSuffix(all[0], "/") && !strings.HasSuffix(all[0], "="):
		all[0] += " "
	}
	common := all[0]
	for _, a := range all[1:] {
		for !strings.HasPrefix(a, common) {
			_, n := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-n]
		}
	}
	if common == word && len(all) > 1 {
		more := max(0, len(all)-mostShown)
		text := wrap(strings.Join(all[:len(all)-more], " "), "  ")
		if more > 0 {
			text += fmt.Sprintf("\n  and %d more", more)
		}
		s.out.interject(text+"\n", false)
	}
	line = line[:begin] + common
	return line, len(line), true
}

// completions are the words that may come after the beginning of a line. They need not begin with what
// was typed of the last one.
func (s *session) completions(ctx context.Context, begun, word string) []string {
	before, err := split(begun)
	if err != nil {
		return nil
	}
	if len(before) == 0 || !before[0].is("define") {
		before = s.completed(before)
	}
	words := texts(before)
	if len(words) == 0 {
		return slices.Concat(slices.Collect(maps.Keys(s.names)), commandNames(), s.Commands)
	}
	switch words[0] {
	case "apm", "kafka", "riemann":
		return s.systemCompletions(ctx, words, word)
	case "elasticsearch":
		switch {
		case len(words) == 1:
			return []string{"use", "reset"}
		case len(words) == 2 && words[1] == "use":
			return []string{"local", "last"}
		}
		return nil
	case "define":
		switch {
		case len(words) == 1:
			return append(slices.Collect(maps.Keys(s.names)), "rm")
		case len(words) == 2 && words[1] == "rm":
			return slices.Collect(maps.Keys(s.names))
		}
		return nil
	case "cancel", "attach":
		return s.jobCompletions(ctx, words)
	case "help":
		return slices.Concat(commandNames(), s.Commands)
	case "test":
		if len(words) >= 6 {
			return []string{"-E", "--mem"}
		}
		return nil
	}
	return s.carronadeCompletions(ctx, words, word)
}

// completed are the words before the one that is typed, of its command alone: names are replaced, and if
// placeholders are left, the word is that of the last one.
func (s *session) completed(before []word) []word {
	if expanded, err := s.names.expand(before); err == nil {
		before = expanded
	}
	for i, w := range slices.Backward(before) {
		if w.is(placeholder) {
			before = before[:i]
			break
		}
	}
	for i, w := range slices.Backward(before) {
		if w.is(separator) {
			return before[i+1:]
		}
	}
	return before
}

// systemCompletions are those of apm, kafka and riemann.
func (s *session) systemCompletions(ctx context.Context, words []string, word string) []string {
	kind := words[0]
	switch {
	case len(words) == 1:
		return []string{"use", "list", "switch", "tail"}
	case words[1] == "use" && strings.HasPrefix(word, "-"):
		return []string{"--url", "--make", "--cmd"}
	case words[1] == "use" && len(words) == 2 && kind == "apm":
		return []string{"last", "docker", "local"}
	case words[1] == "use" && len(words) == 2:
		return append(s.topicsAt(ctx, word), "last", kind+"://")
	case words[1] == "tail":
		return []string{"-n"}
	case words[1] == "switch" && strings.HasPrefix(word, "-"):
		return []string{"--fetch", "--checkout", "--make-update", "--make", "--verbose"}
	case words[1] == "switch" && s.system[kind].Dir != "" && !slices.ContainsFunc(words[2:], func(w string) bool { return !strings.HasPrefix(w, "-") }):
		out := system.GitBranches(ctx, s.system[kind].Dir)
		for _, remote := range system.GitRemotes(ctx, s.system[kind].Dir) { // -f fetches its branches
			out = append(out, remote+"/")
		}
		return out
	}
	return nil
}

// jobCompletions are the numbers of the user's jobs.
func (s *session) jobCompletions(ctx context.Context, words []string) (out []string) {
	if len(words) > 1 {
		return nil
	}
	f := jobs.Filter{User: s.User, Newest: mostShown}
	if words[0] == "cancel" {
		f.States = []jobs.State{jobs.Queued, jobs.Running}
	}
	list, err := s.Queue.Jobs(ctx, f)
	if err != nil {
		return nil
	}
	for _, j := range list {
		out = append(out, strconv.FormatInt(j.ID, 10))
	}
	return out
}

// carronadeCompletions are those of carronade's own commands.
func (s *session) carronadeCompletions(ctx context.Context, words []string, word string) (out []string) {
	if s.Complete != nil {
		out = s.Complete(append(slices.Clone(words), word))
	}
	switch {
	case strings.HasPrefix(word, "-"):
	case words[0] == "report" && len(words) > 1 && words[1] != "list" && words[1] != "import" || words[0] == "compare":
		out = append(out, s.reportIDs(ctx)...)
	case words[0] == "run" || words[0] == "find" || words[0] == "topics":
		out = append(out, s.topicsAt(ctx, word)...)
		for kind, v := range s.system {
			if v.URL != "" && words[0] != "topics" {
				out = append(out, kind)
			}
		}
	}
	return out
}

// reportIDs are the newest reports.
func (s *session) reportIDs(ctx context.Context) []string {
	var found struct {
		Reports []struct {
			ID string `json:"id"`
		} `json:"reports"`
	}
	if !s.read(ctx, &found, "report", "list", "--columns", "started", "--last", strconv.Itoa(mostShown-1), "--json") || len(found.Reports) == 0 {
		return nil
	}
	out := []string{"last"}
	for _, r := range found.Reports {
		out = append(out, r.ID)
	}
	return out
}

// topicsAt are the addresses of topics, if the address of a Kafka was typed up to its topic.
func (s *session) topicsAt(ctx context.Context, word string) (out []string) {
	scheme, rest, _ := strings.Cut(word, "://")
	host, _, ok := strings.Cut(rest, "/")
	if !ok || host == "" || scheme != "kafka" && scheme != "kafka+tls" || s.reach(word) != nil {
		return nil
	}
	var found struct {
		Topics []struct {
			Name string `json:"name"`
		} `json:"topics"`
	}
	base := scheme + "://" + host
	if s.read(ctx, &found, "topics", "list", base, "--json") {
		for _, t := range found.Topics {
			out = append(out, base+"/"+t.Name)
		}
	}
	return out
}

// read runs one of carronade's commands and reads its JSON.
func (s *session) read(ctx context.Context, into any, args ...string) bool {
	var out bytes.Buffer
	return s.Run != nil && s.Run(ctx, args, &out) == 0 && json.Unmarshal(out.Bytes(), into) == nil
}
