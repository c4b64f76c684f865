package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/place"
	"carronade/protocol"
)

// pprofFlags is the state of --cpuprofile and --memprofile: profiles of this program for `go
// tool pprof`. Help does not show the flags, since they are for developers
// (docs/performance.md). A process has one CPU profile, so of several command lines in one
// process only one may use it.
type pprofFlags struct {
	cpu, mem string // files; "" is none
	out      *os.File
}

func (p *pprofFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&p.cpu, "cpuprofile", p.cpu, "write a CPU profile of this program to `FILE`")
	fs.StringVar(&p.mem, "memprofile", p.mem, "write a profile of this program's allocations to `FILE`")
	for _, name := range []string{"cpuprofile", "memprofile"} {
		_ = fs.MarkHidden(name)
	}
}

// start begins the CPU profile.
func (p *pprofFlags) start() error {
	if p.cpu == "" || p.out != nil { // or a command line that another one has started
		return nil
	}
	f, err := place.Create(p.cpu)
	if err == nil {
		if err = pprof.StartCPUProfile(f); err == nil {
			p.out = f
			return nil
		}
		f.Close()
	}
	return &protocol.Error{Err: fmt.Errorf("--cpuprofile: cannot profile into %s: %s", p.cpu, cmdutil.Reason(err)), Hint: "give a file in a writable folder"}
}

// stop ends the CPU profile and writes the memory profile. Call it when the command is done,
// also after an error.
func (p *pprofFlags) stop() error {
	var problems []error
	if p.out != nil {
		pprof.StopCPUProfile()
		if err := p.out.Close(); err != nil {
			problems = append(problems, fmt.Errorf("--cpuprofile: cannot write %s: %s", p.cpu, cmdutil.Reason(err)))
		}
	}
	if p.mem != "" {
		f, err := place.Create(p.mem)
		if err == nil {
			runtime.GC() // the profile shows the state at the last collection
			err = errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("--memprofile: cannot write %s: %s", p.mem, cmdutil.Reason(err)))
		}
	}
	return errors.Join(problems...)
}
