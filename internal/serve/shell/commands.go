package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carronade/internal/advice"
	"carronade/internal/secret"
	"carronade/internal/serve/jobs"
)

// A verb is a command of the shell itself.
type verb struct {
	name  string
	use   []string // its forms
	about string
	run   func(*session, []string) error
}

// verbs are the shell's commands, in the order of help.
var verbs []verb

func init() { // they refer to help, which lists them
	verbs = []verb{
		{"status", []string{"status"}, "the systems in use, and the queue", (*session).status},
		{"kafka", []string{"kafka use [URL [DIR] | last] [--make CMD] [--cmd CMD]", "kafka list", "kafka switch [-fcumv] BRANCH [REVISION]", "kafka tail [-n N] [PATTERN]"}, "the Kafka in use, which the word kafka means in carronade's commands: run kafka --rate 1k/s", (*session).systemVerb},
		{"riemann", []string{"riemann use [URL [DIR] | last] [--make CMD] [--cmd CMD]", "riemann list", "riemann switch [-fcumv] BRANCH [REVISION]", "riemann tail [-n N] [PATTERN]"}, "the Riemann in use, which the word riemann means in carronade's commands", (*session).systemVerb},
		{"elasticsearch", []string{"elasticsearch use [URL [USER [PASSWORD]] | last | local]", "elasticsearch reset"}, "the Elasticsearch behind APM Server, in which reports are saved, too; reset deletes the indices " + "apm-*", (*session).elasticsearch},
		{"apm", []string{"apm use [DIR | URL | last | docker [DIR] | local] [--url URL] [--make CMD] [--cmd CMD]", "apm list", "apm switch [-fcumv] BRANCH [REVISION]", "apm tail [-n N] [PATTERN]"}, apmAbout, (*session).systemVerb},
		{"test", []string{"test DURATION EVENTS SPANS FRAMES CONCURRENCY [-E NAME=VALUE ...] [--mem SIZE]"}, "starts the server, sends requests, each with EVENTS events of SPANS spans (0: errors) with FRAMES frames, and saves a report", (*session).test},
		{"collate", []string{"collate VAR [-n N | AGE] [--sort FIELD] [--csv] [--strict] [FILTER ...]"}, "reports that differ in VAR alone, side by side; FILTER is NAME=VALUE, or with !=, < or >", (*session).collate},
		{"verify", []string{"verify [-n N | AGE] FILTER ..."}, "is the newest revision of a branch worse than those before it?", (*session).verify},
		{"define", []string{"define [TEXT]", "define NAME WORD ...", "define rm NAME"}, "shows, sets or removes a name for words; each $ in them takes one of the last words of a line", nil},
		{"dump", []string{"dump FILE EVENTS SPANS FRAMES"}, "writes the body of a request of test to a file", (*session).dump},
		{"cancel", []string{"cancel", "cancel ID"}, "stops your running jobs, or the job with that number, or all with that id", (*session).cancel},
		{"attach", []string{"attach ID"}, "shows the output of a job", (*session).attach},
		{"detach", []string{"detach"}, "shows no more output of jobs, which go on", (*session).detach},
		{"wait", []string{"wait"}, "waits until the attached jobs have ended", (*session).wait},
		{"help", []string{"help [COMMAND]"}, "this", (*session).help},
		{"quit", []string{"quit", "exit"}, "leaves the session; jobs go on", (*session).quit},
	}
}

const apmAbout = "the APM Server in use; switch records its branch and revision. -f fetches the remote before / in BRANCH, else origin; -c checks out, -m runs make and -u make update, in a folder of its own; -v shows the output"

// commandNames are the words that begin the shell's commands.
func commandNames() []string {
	out := []string{"exit"}
	for _, v := range verbs {
		out = append(out, v.name)
	}
	return out
}

// find returns the shell's command with that name.
func find(name string) (verb, bool) {
	if name == "exit" {
		name = "quit"
	}
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == name })
	if i < 0 {
		return verb{}, false
	}
	return verbs[i], true
}

// command runs one command.
func (s *session) command(words []string) error {
	v, ok := find(words[0])
	switch {
	case words[0] == "terminal": // not a command of users, so help does not list it
		return s.useTerminal(words)
	case ok && v.run != nil:
		return v.run(s, words)
	case slices.Contains(s.Commands, words[0]):
		return s.carronade(words)
	}
	return s.unknown(words)
}

func (s *session) unknown(words []string) error {
	all := append(commandNames(), s.Commands...)
	return hinted(fmt.Errorf("nothing done for %s", cut(words[0], 60)), advice.DidYouMean(words[0], all, "%s", "help lists the commands"))
}

// usage is the error of wrong arguments.
func usage(v verb) error { return errors.New("usage: " + strings.Join(v.use, "\n       ")) }

func (s *session) usage(words []string) error {
	v, _ := find(words[0])
	return usage(v)
}

// carronade runs or queues one of carronade's own commands.
func (s *session) carronade(words []string) error {
	if err := s.allowed(words); err != nil {
		return err
	}
	var m secret.Mask
	if shown := m.Args(words); !slices.Equal(shown, words) {
		return hinted(errors.New("the line contains a secret, which others could read in the list of processes"), "give secrets as file:PATH or env:NAME")
	}
	args := s.withSystem(words)
	if s.Loads == nil || !s.Loads(args) {
		return s.run(args)
	}
	return s.submit(jobs.Request{System: s.System(args), Typed: typed(words), Args: args})
}

// harmless are carronade's commands that neither read nor write files that are named
// in their arguments.
var harmless = [][]string{{"help"}, {"version"}, {"report", "list"}, {"report", "show"}}

// allowed returns an error if the session may not run a command of carronade.
func (s *session) allowed(args []string) error {
	switch {
	case s.Allow == nil:
		return nil
	case s.Allow.Command != nil:
		return s.Allow.Command(args)
	}
	for _, h := range harmless {
		if len(args) >= len(h) && slices.Equal(args[:len(h)], h) && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }) {
			return nil
		}
	}
	return errors.New("this session may not run " + args[0])
}

// run runs one of carronade's commands at once.
func (s *session) run(args []string) error {
	c := &cleaner{color: s.Color, to: func(text string) { s.out.Write([]byte(hintsHere(text))) }} //nolint:errcheck // the session ends then
	code := s.Run(s.work, args, c)
	c.end()
	if code != 0 {
		return errSilent{code}
	}
	return nil
}

// hintsHere makes the commands that hints name commands of the shell.
func hintsHere(text string) string { return strings.ReplaceAll(text, "hint: carronade ", "hint: ") }

// errSilent is the exit code of a command that has said why.
type errSilent struct{ code int }

func (e errSilent) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func (s *session) help(words []string) error {
	if len(words) > 1 {
		v, ok := find(words[1])
		switch {
		case ok:
			s.say("%s", helpOf(v))
			return nil
		case slices.Contains(s.Commands, words[1]):
			return s.run(words)
		}
		return s.unknown(words[1:])
	}
	for _, v := range verbs {
		s.say("%s", helpOf(v))
	}
	s.say("\ncarronade's own commands, such as report list; those that generate load are queued:")
	s.say("%s", wrap(strings.Join(s.Commands, ", "), "  "))
	s.say("\n`a ; b` is two commands, with a blank on both sides of the semicolon. Quotes keep\nblanks in a word. help COMMAND explains one.")
	return nil
}

func helpOf(v verb) string {
	return strings.Join(v.use, "\n") + "\n" + wrap(v.about, "    ")
}

// wrap breaks a text into lines of 80 columns.
func wrap(text, indent string) string {
	var lines []string
	line := ""
	for w := range strings.FieldsSeq(text) {
		if line != "" && len(indent)+len(line)+1+len(w) > 80 {
			lines, line = append(lines, indent+line), ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return strings.Join(append(lines, indent+line), "\n")
}

func (s *session) quit([]string) error {
	s.say("bye!")
	return errQuit
}

// define shows, sets and removes names. Unlike the tool's, it never waits for a job.
func (s *session) define(ws []word) error {
	switch {
	case len(ws) < 2:
		part := strings.Join(texts(ws), "")
		list := s.names.list(part)
		if len(list) == 0 {
			s.say("nothing to show")
		}
		for _, l := range list {
			s.say("%s", l)
		}
		return nil
	case ws[0].is("rm"):
		if len(ws) != 2 {
			v, _ := find("define")
			return usage(v)
		}
		var used []string
		n, err := s.home.updateNames(func(n names) (err error) { used, err = n.remove(ws[1].text); return err })
		if err != nil {
			return err
		}
		s.names = n
		if len(used) > 0 {
			s.say("%s", s.out.paint(yellow, "still used by "+strings.Join(used, ", ")))
		}
		s.say("ok")
		return nil
	}
	old := ""
	n, err := s.home.updateNames(func(n names) (err error) { old, err = n.set(ws[0].text, ws[1:]); return err })
	if err != nil {
		return err
	}
	s.names = n
	if old != "" {
		s.say("updated old value: %s", old)
	} else {
		s.say("ok")
	}
	return nil
}

// soonCtx is the context of a command that answers at once.
func (s *session) soonCtx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.work, soon)
}
