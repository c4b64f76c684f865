package omb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"carronade/internal/advice"
	"carronade/internal/place"
	"carronade/units"
)

// arguments are a command line.
type arguments struct {
	drivers, workers []string
	workersFile      string
	output           string
	csv              string // the folder of --csv
	extra, help      bool
	workloads        []string

	// Ours.
	check  bool
	engine string
	key    string        // the file of the workers' key
	budget time.Duration // of a search
}

// A flag is one of the flags, with or without a value.
type flag struct {
	names []string
	word  string // of the value; "": it has none
	help  string
	set   func(a *arguments, value string) error
	ours  bool
}

func flags() []flag {
	list := func(to func(*arguments) *[]string) func(*arguments, string) error {
		return func(a *arguments, value string) error {
			for one := range strings.SplitSeq(value, ",") {
				if one = strings.TrimSpace(one); one != "" {
					*to(a) = append(*to(a), one)
				}
			}
			return nil
		}
	}
	text := func(to func(*arguments) *string) func(*arguments, string) error {
		return func(a *arguments, value string) error {
			*to(a) = value
			return nil
		}
	}
	on := func(to func(*arguments) *bool) func(*arguments, string) error {
		return func(a *arguments, _ string) error {
			*to(a) = true
			return nil
		}
	}
	return []flag{
		{names: []string{"-d", "--drivers"}, word: "FILE,FILE", help: "driver files; each workload runs with each of them", set: list(func(a *arguments) *[]string { return &a.drivers })},
		{names: []string{"-w", "--workers"}, word: "ADDR,ADDR", help: "machines that send, HOST:PORT or http://HOST:PORT: each runs carronade as omb-worker", set: list(func(a *arguments) *[]string { return &a.workers })},
		{names: []string{"-wf", "--workers-file"}, word: "FILE", help: "a file with the list of workers (default: workers.yaml, if it exists)", set: text(func(a *arguments) *string { return &a.workersFile })},
		{names: []string{"-x", "--extra"}, help: "no effect: one machine reads what all workers send", set: on(func(a *arguments) *bool { return &a.extra })},
		{names: []string{"-o", "--output"}, word: "FILE", help: "the result file (default: WORKLOAD-DRIVER-DATE.json); a number is added for further runs", set: text(func(a *arguments) *string { return &a.output })},
		{names: []string{"-c", "--csv"}, word: "FOLDER", help: "only write a CSV file of the result files in a folder", set: text(func(a *arguments) *string { return &a.csv })},
		{names: []string{"-h", "--help"}, help: "print this", set: on(func(a *arguments) *bool { return &a.help })},
		{names: []string{"--check"}, ours: true, help: "only print what each workload becomes, with the command that does the same", set: on(func(a *arguments) *bool { return &a.check })},
		{names: []string{"--engine"}, ours: true, word: "NAME", help: "wire (default) or client: with client, consumers are members of real groups", set: func(a *arguments, value string) error {
			if value != "wire" && value != "client" {
				return fmt.Errorf("--engine %s: must be wire or client", value)
			}
			a.engine = value
			return nil
		}},
		{names: []string{"--budget"}, ours: true, word: "TIME", help: "how long to search the rate of producerRate: 0 (default: 10m)", set: func(a *arguments, value string) (err error) {
			if a.budget, err = units.ParseDuration(value); err != nil {
				return fmt.Errorf("--budget: %w", err)
			}
			return nil
		}},
		{names: []string{"--node-key"}, ours: true, word: "FILE", help: "the key file that workers made (default: your own, for workers on this machine)", set: text(func(a *arguments) *string { return &a.key })},
	}
}

// parseArguments reads a command line. Like the tool, it takes the value of a flag from the next argument,
// and other arguments are workloads. It also takes a value after =.
func parseArguments(args []string) (*arguments, error) {
	a, known := &arguments{}, flags()
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			a.workloads = append(a.workloads, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(args[i], "-") {
			a.workloads = append(a.workloads, args[i])
			continue
		}
		name, value, has := strings.Cut(args[i], "=")
		at := slices.IndexFunc(known, func(f flag) bool { return slices.Contains(f.names, name) })
		switch {
		case at < 0:
			var names []string
			for _, f := range known {
				names = append(names, f.names...)
			}
			return nil, &advice.Error{Err: fmt.Errorf("unknown flag %s", name), Hint: advice.DidYouMean(name, names, "%s", "carronade as omb --help lists the flags")}
		case known[at].word == "" && has:
			return nil, fmt.Errorf("%s takes no value", name)
		case known[at].word != "" && !has:
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		if err := known[at].set(a, value); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// complete checks what a run needs, and reads the file of workers.
func (a *arguments) complete() error {
	switch {
	case len(a.workloads) == 0:
		return &advice.Error{Err: errors.New("no workload is given"), Hint: "name workload files: carronade as omb --drivers kafka.yaml workloads/1-topic-16-partitions-1kb.yaml"}
	case len(a.drivers) == 0:
		return &advice.Error{Err: errors.New("no driver is given"), Hint: "name driver files: --drivers driver-kafka/kafka-throughput.yaml"}
	case len(a.workers) > 0 && a.workersFile != "":
		return errors.New("only one of --workers and --workers-file can be given")
	}
	if a.workersFile == "" && len(a.workers) == 0 {
		if _, err := place.Stat(defaultWorkers); err == nil {
			a.workersFile = defaultWorkers
		}
	}
	if a.workersFile == "" {
		return nil
	}
	return readFile(a.workersFile, []field{{"workers", func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return errors.New("must be a list of addresses")
		}
		for _, one := range n.Content {
			if one.Kind != yaml.ScalarNode || one.Value == "" {
				return errors.New("must be a list of addresses")
			}
			a.workers = append(a.workers, one.Value)
		}
		return nil
	}}}, func(string) {})
}

// defaultWorkers is the file with the workers if no flag names them.
const defaultWorkers = "workers.yaml"

// budgetOr is the time of a search.
func (a *arguments) budgetOr() time.Duration { return cmp.Or(a.budget, 10*time.Minute) }
