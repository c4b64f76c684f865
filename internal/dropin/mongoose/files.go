package mongoose

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/secret"
)

// The folders below ~/.mongoose.
const version42, version43 = "4.2.11", "4.3.3"

// files are the files of a step, in ~/.mongoose/VERSION/log/STEP. Rows are appended
// to those of an earlier step with the same id.
type files struct {
	s        *step
	dir      string
	err      error // the first error
	periodic bool  // metrics.csv is written
	summary  bool  // metrics.total.csv is written
}

// openFiles makes the folder and writes the files that are known at the start. It
// reports whether the folder existed.
func openFiles(s *step, args []string) (*files, bool, error) {
	root, err := logRoot(s.is43)
	if err != nil {
		return nil, false, err
	}
	f := &files{
		s: s, dir: filepath.Join(root, s.id),
		periodic: s.v.flag("output-metrics-average-persist") && s.period > 0, summary: s.v.flag("output-metrics-summary-persist"),
	}
	_, err = os.Stat(f.dir)
	again := err == nil
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, false, fmt.Errorf("make the folder of the step: %w", err)
	}
	if err := f.checkWritable(); err != nil {
		return nil, false, err
	}
	err = errors.Join(
		os.WriteFile(f.path("cli.args.log"), []byte(strings.Join(new(secret.Mask).Args(args), "\n")+"\n"), 0o644),
		os.WriteFile(f.path("config.yaml"), []byte(optionsDocument(s.is43, s.v.public().yamlValue)), 0o644),
	)
	if f.periodic { // log4j makes the file and its header line even without rows
		err = errors.Join(err, f.begin("metrics.csv", false))
	}
	return f, again, err
}

// checkWritable opens each file that the end of the step will write, so that a step
// does not fail only after it has run.
func (f *files) checkWritable() error {
	var paths []string
	if f.periodic {
		paths = append(paths, f.path("metrics.csv"))
	}
	if f.summary {
		paths = append(paths, f.path("metrics.total.csv"))
	}
	if f.s.trace {
		paths = append(paths, f.path("op.trace.csv"))
		if f.s.v.kind == pipelineLoad {
			paths = append(paths, f.path("e2e.csv"))
		}
	}
	if f.s.threshold > 0 && f.s.concurrency > 0 {
		if f.periodic {
			paths = append(paths, f.path("metrics.threshold.csv"))
		}
		if f.summary {
			paths = append(paths, f.path("metrics.threshold.total.csv"))
		}
	}
	for _, path := range paths {
		if err := checkFileWritable(path); err != nil {
			return fmt.Errorf("the step's files: cannot write %w", err)
		}
	}
	if list := f.s.v.text("item-output-file"); list != "" && (f.s.work == writeRecords || f.s.work == onTopics) {
		lists := []string{list}
		if f.s.work == writeRecords {
			lists = append(lists, placesOf(list))
		}
		for _, path := range lists {
			if err := checkFileWritable(path); err != nil {
				return fmt.Errorf("--item-output-file: cannot write %w", err)
			}
		}
	}
	return nil
}

// checkFileWritable checks that a file can be written, and leaves it unchanged.
func checkFileWritable(path string) error {
	_, err := os.Lstat(path)
	file, openErr := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if openErr != nil {
		return fmt.Errorf("%s: %w", path, host.Reason(openErr))
	}
	openErr = file.Close()
	if errors.Is(err, os.ErrNotExist) {
		openErr = errors.Join(openErr, os.Remove(path))
	}
	return openErr
}

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }

// yamlValue is the value of an option in YAML.
func (v *values) yamlValue(o *option) string {
	value := v.text(o.name)
	switch {
	case o.kind == tList:
		return "[" + strings.Join(v.list(o.name), ", ") + "]"
	case value == "":
		return "null"
	case o.kind == tString || o.kind == tAny || o.kind == tMap:
		return strconv.Quote(value)
	}
	return value
}

// optionsDocument is all options as a YAML document, with of as their values.
func optionsDocument(is43 bool, of func(o *option) string) string {
	var b strings.Builder
	b.WriteString("---\n")
	sorted := slices.DeleteFunc(slices.Clone(options), func(o option) bool { return !inVersion(&o, is43) })
	slices.SortFunc(sorted, func(a, b option) int {
		return slices.Compare(strings.Split(a.name, "-"), strings.Split(b.name, "-"))
	})
	var above []string
	for _, o := range sorted {
		parts := strings.Split(o.name, "-")
		same := 0
		for same < len(parts)-1 && same < len(above) && parts[same] == above[same] {
			same++
		}
		above = parts[:len(parts)-1]
		for i := same; i < len(above); i++ {
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), above[i])
		}
		fmt.Fprintf(&b, "%s%s: %s\n", strings.Repeat("  ", len(above)), parts[len(parts)-1], of(&o))
	}
	return b.String()
}

// csvColumns are the columns before the times.
const csvColumns = "DateTimeISO8601,OpType,Concurrency,NodeCount,ConcurrencyCurr,ConcurrencyMean,CountSucc,CountFail,Size,StepDuration[s],DurationSum[s],TPAvg[op/s],TPLast[op/s],BWAvg[MB/s],BWLast[MB/s]"

// csvHead is the header line. Quantiles other than the quartiles have columns with
// their values; in 4.3 the total always has such columns.
func (s *step) csvHead(total bool) string {
	var b strings.Builder
	b.WriteString(csvColumns)
	for _, t := range []string{"Duration", "Latency"} {
		fmt.Fprintf(&b, ",%[1]sAvg[us],%[1]sMin[us]", t)
		for i, q := range s.quantiles {
			label := "Q_" + dropin.JavaDouble(q)
			if s.quartiles() && !(s.is43 && total) {
				label = []string{"LoQ", "Med", "HiQ"}[i]
			}
			fmt.Fprintf(&b, ",%s%s[us]", t, label)
		}
		fmt.Fprintf(&b, ",%sMax[us]", t)
	}
	return b.String()
}

// csvRow is a row. With --strict, 4.3's periodic rows have no quantiles, so that
// their columns differ from those of the header line.
func (s *step) csvRow(m *metrics, total bool) string {
	mb := float64(mib)
	if s.strict {
		mb = 1e6 // only in these files
	}
	fields := []string{
		`"` + m.at.UTC().Format(isoTime) + `"`, s.op, strconv.Itoa(s.concurrency), strconv.Itoa(s.nodeCount()),
		strconv.FormatUint(m.current, 10), dropin.JavaDouble(m.mean), strconv.FormatUint(m.succ, 10), strconv.FormatUint(m.fail, 10),
		strconv.FormatUint(m.bytes, 10), dropin.JavaDouble(seconds(m)), dropin.JavaDouble(m.duration.sum),
		dropin.JavaDouble(m.meanRate), dropin.JavaDouble(m.lastRate), dropin.JavaDouble(m.meanBytes / mb), dropin.JavaDouble(m.lastBytes / mb),
	}
	for _, t := range []timing{m.duration, m.latency} {
		fields = append(fields, dropin.JavaDouble(t.mean), strconv.FormatInt(t.min, 10))
		for _, q := range t.quantiles {
			if !(s.strict && s.is43 && !total) {
				fields = append(fields, strconv.FormatInt(q, 10))
			}
		}
		fields = append(fields, strconv.FormatInt(t.max, 10))
	}
	return strings.Join(fields, ",")
}

// row writes a periodic row.
func (f *files) row(m *metrics) {
	if f.periodic {
		f.add("metrics.csv", m, false)
	}
}

// total writes the step's total row.
func (f *files) total(m *metrics) {
	if f.summary {
		f.add("metrics.total.csv", m, true)
	}
}

func (f *files) add(name string, m *metrics, total bool) {
	f.keepError(errors.Join(f.begin(name, total), appendFile(f.path(name), f.s.csvRow(m, total)+"\n")))
}

// begin writes the header line of an empty file.
func (f *files) begin(name string, total bool) error {
	if info, err := os.Stat(f.path(name)); err == nil && info.Size() > 0 {
		return nil
	}
	return appendFile(f.path(name), f.s.csvHead(total)+"\n")
}

// keepError records the first error. A file that can no longer be written does not
// end the run; it is reported at its end.
func (f *files) keepError(err error) {
	if f.err == nil {
		f.err = err
	}
}

func appendFile(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// writers are buffered files that are closed together.
type writers []func() error

// open opens a file, which is made if it does not exist.
func (w *writers) open(path string, flags int) (*bufio.Writer, error) {
	file, err := os.OpenFile(path, flags|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	b := bufio.NewWriterSize(file, 1<<16)
	*w = append(*w, func() error { return errors.Join(b.Flush(), file.Close()) })
	return b, nil
}

// close writes what is buffered, and closes all files.
func (w *writers) close() error {
	var errs []error
	for _, c := range *w {
		errs = append(errs, c())
	}
	*w = nil
	return errors.Join(errs...)
}

// isoTime is the format of times in files and messages, which are in UTC.
const isoTime = "2006-01-02T15:04:05,000"

// logf writes a message as mongoose's main thread does on the console.
func logf(w io.Writer, level byte, class, format string, args ...any) {
	fmt.Fprintf(w, "%s %c %s %s %s\n", time.Now().UTC().Format(isoTime), level, right(class, 30), right("main", 30), fmt.Sprintf(format, args...))
}
