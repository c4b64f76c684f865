package mongoose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/scenario"
	"carronade/units"
)

// Language is the name of the language of scripts, which RunScript runs.
const Language = "mongoose"

// scriptData is what a script needs besides its source, as JSON in scenario.Script.Data.
type scriptData struct {
	Strict bool `json:"strict,omitempty"` // as mongoose: nothing is repaired
	Commas bool `json:"commas,omitempty"` // insert missing commas
	Exec   bool `json:"exec,omitempty"`   // the script may start processes
	Apart  bool `json:"apart,omitempty"`  // the script does not see the environment
}

// scenarioHelp is the help of the flags of scenarios.
const scenarioHelp = `flags of carronade for --run-scenario=FILE:
  --check              print what each step does and what each of its paths
                       becomes, and send nothing
  --repair             insert commas that are missing in a map
  --allow-exec         let the script start processes
  --max-steps=N        end the script before its next step
  --for=TIME           end the script after this time, such as 10m
  --script-time=TIME   processor time between two steps (default: 10s)
  --script-memory=SIZE the most memory of the script (default: 256MiB)
`

// checkedSteps is how many steps a check prints at most.
const checkedSteps = 100

// scenarioFlags are our own flags for scenarios.
type scenarioFlags struct {
	first               string // that was given, "" for none
	check, repair, exec bool
	steps               int
	length, compute     time.Duration
	memory              int64
}

// splitScenario takes our own flags for scenarios out of a command line.
func splitScenario(args []string) (rest []string, f scenarioFlags, err error) {
	f.steps, f.compute, f.memory = math.MaxInt, scenario.DefaultCompute, scenario.DefaultMemory
	for _, arg := range args {
		name, text, has := strings.Cut(arg, "=")
		own := true
		switch name {
		case "--check":
			f.check = true
		case "--repair":
			f.repair = true
		case "--allow-exec":
			f.exec = true
		case "--max-steps":
			if f.steps, err = strconv.Atoi(text); err != nil || f.steps < 1 {
				return nil, f, fmt.Errorf("--max-steps: %q is not a number above 0", text)
			}
		case "--for":
			f.length, err = units.ParseDuration(text)
		case "--script-time":
			f.compute, err = units.ParseDuration(text)
		case "--script-memory":
			f.memory, err = units.ParseSize(text)
		default:
			own = false
			rest = append(rest, arg)
		}
		if err != nil {
			return nil, f, fmt.Errorf("%s: %w", name, err)
		}
		if isSwitch := name == "--check" || name == "--repair" || name == "--allow-exec"; own && isSwitch && has {
			return nil, f, fmt.Errorf("%s takes no value", name)
		}
		if own && f.first == "" {
			f.first = name
		}
	}
	switch {
	case f.length < 0:
		err = errors.New("--for must be above 0")
	case f.compute <= 0:
		err = errors.New("--script-time must be above 0")
	case f.memory < scenario.LeastMemory:
		err = fmt.Errorf("--script-memory: an interpreter needs %s", units.FlagSize(scenario.LeastMemory))
	}
	return rest, f, err
}

// runScenario runs the script of --run-scenario.
func runScenario(ctx context.Context, p *dropin.Program, v *values, f scenarioFlags) (int, error) {
	file := v.text("run-scenario")
	source, err := scenario.ReadSource(file)
	if err != nil {
		return host.ExitFailed, fmt.Errorf("--run-scenario: cannot read %s: %w", file, err)
	}
	data, err := json.Marshal(scriptData{Strict: p.Strict, Commas: f.repair, Exec: f.exec, Apart: v.confined != ""})
	if err != nil {
		return host.ExitFailed, err
	}
	seed := fnv.New64a()
	io.WriteString(seed, source) //nolint:errcheck // a hash takes everything
	r := newRunner(ctx, p, v, p.Args)
	r.dry, r.exec = f.check, f.exec
	steps := f.steps
	if f.check {
		steps = min(steps, checkedSteps)
	}
	why, fault, err := p.Scenario(ctx, scenario.Options{
		Script: scenario.Script{
			Path: file, Source: source, Language: Language, Seed: seed.Sum64(), Depth: scenario.DefaultDepth, Dry: f.check, Data: data,
		},
		Runner: r, Memory: f.memory, Compute: f.compute, MaxSteps: steps, For: f.length,
		Print: func(text string) { r.printf("%s\n", text) },
		Warn:  r.warn,
	})
	if err != nil {
		return host.ExitFailed, err
	}
	if fault != nil {
		warner(p)("%s", fault)
		if fault.Hint != "" {
			warner(p)("hint: %s", fault.Hint)
		}
	}
	if f.check {
		r.summary(p, why)
	}
	switch code := r.code; {
	case fault != nil:
		return host.WorseExit(code, host.ExitFailed), nil //nolint:nilerr // the fault is printed
	case why == scenario.Interrupted:
		return host.ExitInterrupted, nil
	case p.Strict:
		return host.ExitOK, nil
	default:
		return code, nil
	}
}

// summary ends a check.
func (r *runner) summary(p *dropin.Program, why scenario.Reason) {
	text := units.Plural(r.runs, "step")
	if r.bad > 0 {
		text += fmt.Sprintf(", %d of them cannot run", r.bad)
	}
	if why == scenario.BySteps {
		text += "; then the check ended, and the script goes on"
	}
	fmt.Fprintln(p.Out, text)
}
