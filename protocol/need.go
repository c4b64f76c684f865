package protocol

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"carronade/units"
)

// A Need is what a number of a workload takes of the machine.
type Need struct {
	Setting string // that has the number, such as clients
	Number  int64
	Bytes   int64      // of memory that each takes
	Sizes   []NeedSize // further memory that each takes
	Files   int64      // that each has open
}

// A NeedSize is memory that a setting asks for: as many bytes as its value, or several times that.
type NeedSize struct {
	Setting string
	Bytes   int64
	Times   float64 // 0: once
}

// OtherFiles is how many files a run may open in addition to its connections: those by which its
// sending threads wait, the report, and what it reads and writes until its end.
const OtherFiles = 32

// A Room is what a run may take of the machine. The zero Room has no limits.
type Room struct {
	Memory int64  // bytes; 0: no limit
	From   string // whose memory it is, for errors: "this machine has %s free"
	Files  int64  // the limit of open files; 0: none
	Open   int64  // files that are open now
}

// Check returns an *Error if the needs are more than the room: the number that takes the most, what it would
// take, and the number that fits.
func (r *Room) Check(needs []Need) error {
	needs = joined(needs)
	if err := r.checkMemory(needs); err != nil {
		return err
	}
	return r.checkFiles(needs)
}

// MemoryOf is the memory that needs take together, in bytes.
func MemoryOf(needs []Need) int64 {
	sum := 0.0
	for i := range needs {
		sum += float64(needs[i].Number) * needs[i].memory()
	}
	return int64(min(sum, 1<<62))
}

// joined makes one need of those for the same number.
func joined(needs []Need) (out []Need) {
	for _, n := range needs {
		if i := slices.IndexFunc(out, func(o Need) bool { return o.Setting == n.Setting && o.Number == n.Number }); i >= 0 {
			out[i].Bytes += n.Bytes
			out[i].Files += n.Files
			out[i].Sizes = slices.Concat(out[i].Sizes, n.Sizes)
			continue
		}
		out = append(out, n)
	}
	return out
}

// memory returns what each takes.
func (n *Need) memory() float64 {
	sum := float64(n.Bytes)
	for i := range n.Sizes {
		sum += n.Sizes[i].memory()
	}
	return sum
}

func (s *NeedSize) memory() float64 { return float64(s.Bytes) * max(1, s.Times) }

func (r *Room) checkMemory(needs []Need) error {
	sum, most := 0.0, 0.0
	var worst *Need
	for i := range needs {
		n := &needs[i]
		all := float64(n.Number) * n.memory()
		if sum += all; all > most {
			most, worst = all, n
		}
	}
	room := float64(r.Memory)
	if r.Memory <= 0 || sum <= room {
		return nil
	}
	room -= sum - most // the rest for the worst
	free := fmt.Sprintf(r.From, units.FormatSize(r.Memory))
	err := &Error{Err: fmt.Errorf("--%s %s takes %s of memory%s, and %s", worst.Setting, units.FormatCount(uint64(worst.Number)), size(most), worst.because(), free)}
	fit := rounded(room / worst.memory())
	if worst.Files > 0 && r.Files > 0 {
		fit = min(fit, math.Floor(r.left(needs, worst)/float64(worst.Files)))
	}
	if fit >= 1 {
		err.Hint = fmt.Sprintf("give --%s %.0f or fewer%s", worst.Setting, fit, worst.otherwise())
		return err
	}
	largest := worst.largest()
	if largest == nil {
		if worst.Number > 1 { // the rest takes too much for even one
			err.Hint = "use a machine with more memory"
			return err
		}
		return &Error{Err: fmt.Errorf("--%s takes %s of memory, and %s", worst.Setting, size(most), free), Hint: "give a smaller one"}
	}
	if worst.Number == 1 {
		err.Err = fmt.Errorf("--%s %s takes %s of memory, and %s", largest.Setting, units.FlagSize(largest.Bytes), size(most), free)
	}
	each := room/float64(worst.Number) - (worst.memory() - largest.memory())
	if fit := int64(each / max(1, largest.Times)); fit >= 1 {
		err.Hint = fmt.Sprintf("give --%s %s or less", largest.Setting, units.FlagSizeBelow(fit))
	} else {
		err.Hint = fmt.Sprintf("give smaller %s", worst.sizes())
	}
	return err
}

func (r *Room) checkFiles(needs []Need) error {
	var worst *Need
	for i := range needs {
		if n := &needs[i]; worst == nil || n.files() > worst.files() {
			worst = n
		}
	}
	if r.Files <= 0 || worst == nil || worst.files() <= r.left(needs, worst) {
		return nil
	}
	need := float64(r.Files) + worst.files() - r.left(needs, worst)
	err := &Error{Err: fmt.Errorf("--%s %s takes about %.0f open files (%d are open now), and the limit is %d",
		worst.Setting, units.FormatCount(uint64(worst.Number)), need, r.Open, r.Files)}
	raise := fmt.Sprintf("raise the limit (ulimit -n %.0f, or LimitNOFILE= of a systemd unit)", 2*need)
	if fit := math.Floor(r.left(needs, worst) / float64(worst.Files)); fit >= 1 {
		err.Hint = fmt.Sprintf("give --%s %.0f or fewer, or %s", worst.Setting, fit, raise)
	} else {
		err.Hint = raise
	}
	return err
}

func (n *Need) files() float64 { return float64(n.Number) * float64(n.Files) }

// left is how many files are left for a need, next to the others.
func (r *Room) left(needs []Need, of *Need) float64 {
	left := float64(r.Files - r.Open - OtherFiles)
	for i := range needs {
		if &needs[i] != of {
			left -= needs[i].files()
		}
	}
	return left
}

// because says of which settings each takes much.
func (n *Need) because() string {
	each := ""
	if n.Number > 1 {
		each = ", " + size(n.memory()) + " each"
	}
	if n.largest() == nil {
		return each
	}
	return each + " (its " + n.sizes() + ")"
}

// otherwise is the other way to make each take less.
func (n *Need) otherwise() string {
	if n.largest() == nil {
		return ""
	}
	return ", or smaller " + n.sizes()
}

// sizes are the settings of most of what each takes.
func (n *Need) sizes() string {
	var names []string
	for i := range n.Sizes {
		if name := "--" + n.Sizes[i].Setting; n.Sizes[i].memory() >= n.memory()/8 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// largest is the size that takes the most; nil if all take little.
func (n *Need) largest() (largest *NeedSize) {
	for i := range n.Sizes {
		if s := &n.Sizes[i]; s.memory() >= n.memory()/8 && (largest == nil || s.memory() > largest.memory()) {
			largest = s
		}
	}
	return largest
}

// rounded rounds down to two digits.
func rounded(v float64) float64 {
	if v < 1 {
		return 0
	}
	step := math.Pow(10, max(0, math.Floor(math.Log10(v))-1))
	return math.Floor(v/step) * step
}

func size(bytes float64) string { return units.FormatSize(int64(min(bytes, 1<<62))) }
