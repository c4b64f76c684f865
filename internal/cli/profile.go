package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/spf13/pflag"

	"carronade/internal/command"
)

// A profile is what --cpuprofile and --memprofile ask for: profiles of the
// program itself, for `go tool pprof`. The flags stand in no help: they are for
// those who work on the program (docs/performance.md). Profiling is the
// process's, so of several command lines in one process only one may ask.
type profile struct {
	cpu, mem string // files; "" is none
	out      *os.File
}

func (p *profile) bind(fs *pflag.FlagSet) {
	fs.StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile of this program to `FILE`")
	fs.StringVar(&p.mem, "memprofile", "", "write a profile of this program's allocations to `FILE`")
	for _, name := range []string{"cpuprofile", "memprofile"} {
		_ = fs.MarkHidden(name)
	}
}

// start begins what was asked for.
func (p *profile) start() error {
	if p.cpu == "" {
		return nil
	}
	f, err := os.Create(p.cpu)
	if err == nil {
		if err = pprof.StartCPUProfile(f); err == nil {
			p.out = f
			return nil
		}
		f.Close()
	}
	return &words{Err: fmt.Errorf("--cpuprofile: cannot profile into %s: %s", p.cpu, command.Reason(err)), Hint: "give a file in a folder that exists and may be written"}
}

// stop ends what start began and writes the rest; it is called once the command
// is done, however that ended.
func (p *profile) stop() error {
	var problems []error
	if p.out != nil {
		pprof.StopCPUProfile()
		if err := p.out.Close(); err != nil {
			problems = append(problems, fmt.Errorf("--cpuprofile: cannot write %s: %s", p.cpu, command.Reason(err)))
		}
	}
	if p.mem != "" {
		f, err := os.Create(p.mem)
		if err == nil {
			runtime.GC() // the profile is as of the last collection
			err = errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("--memprofile: cannot write %s: %s", p.mem, command.Reason(err)))
		}
	}
	return errors.Join(problems...)
}
