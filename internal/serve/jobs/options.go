package jobs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"carronade/internal/host"
	"carronade/protocol"
)

// Options are the settings of a queue. A zero number or time means the default.
type Options struct {
	Dir      string   // data folder, created with mode 0700
	Parallel int      // jobs that run at once, of different systems; default 1
	Program  []string // the program of the jobs and its first arguments; default: this program
	// Environ is the environment of a job's process when it starts; nil: that of this program.
	// Job.Env is added.
	Environ func(j *Job) []string
	// Frames, if set, gets what each job writes to its file descriptor 3, whose
	// number is also in the variable CARRONADE_FRAMES of its environment. It is
	// called in a goroutine for each job that starts, and must return when r ends.
	// A job ends after its frames were read, at most two seconds after its process.
	// On Windows, processes get no such file, and Frames is not called.
	Frames func(id int64, r io.Reader)
	// Problem, if set, gets errors that no caller sees: a change of a job's state
	// could not be stored, and the queue tries again until it can. It is called
	// once for each such change, by several goroutines.
	Problem func(err error)

	QueuedPerUser int           // queued jobs of one user; default 100
	Queued        int           // queued jobs in all; default 10,000
	KeepEnded     int           // ended jobs that are kept, the newest; default 1,000
	MostOutput    int64         // of one job, in bytes, 4 KiB at least; default 10 MiB: see Queue.Output
	MostFiles     int64         // of the folder files, in bytes: a job that makes it larger is ended; 0: there is no limit
	Memory        int64         // what a job may ask for, in bytes, for the error of one that took more; 0: it is not limited
	CancelLimit   time.Duration // how long a cancelled job may take to end before it is killed; default 1 min
	Drain         time.Duration // the same when the server ends; default 10 s
}

// FramesVariable is the variable of a job's environment with the number of the
// file descriptor for Options.Frames.
const FramesVariable = "CARRONADE_FRAMES"

const leastOutput = 4 << 10

// complete fills in the defaults.
func (o *Options) complete() error {
	dir, err := filepath.Abs(o.Dir)
	if o.Dir == "" {
		err = errors.New("none is given")
	}
	if err != nil {
		return &protocol.Error{Doing: "open the data folder", Err: err, Hint: "give the path of a folder"}
	}
	o.Dir = dir
	if len(o.Program) == 0 {
		self, err := os.Executable()
		if err != nil {
			return &protocol.Error{Doing: "find the program of the jobs", Err: err, Hint: "start carronade with its full path"}
		}
		o.Program = []string{self}
	}
	o.Parallel = orDefault(o.Parallel, 1)
	o.QueuedPerUser = orDefault(o.QueuedPerUser, 100)
	o.Queued = orDefault(o.Queued, 10_000)
	o.KeepEnded = orDefault(o.KeepEnded, 1000)
	o.MostOutput = max(leastOutput, orDefault(o.MostOutput, 10<<20))
	o.CancelLimit = orDefault(o.CancelLimit, time.Minute)
	o.Drain = orDefault(o.Drain, 10*time.Second)
	if o.Environ == nil {
		o.Environ = func(*Job) []string { return host.Environ() }
	}
	if o.Problem == nil {
		o.Problem = func(error) {}
	}
	return nil
}

func orDefault[T int | int64 | time.Duration](v, standard T) T {
	if v <= 0 {
		return standard
	}
	return v
}
