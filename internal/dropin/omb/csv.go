package omb

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/advice"
	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/place"
)

// csvHeader are the columns of --csv.
const csvHeader = "topics,partitions,message-size,producers-per-topic,consumers-per-topic," +
	"prod-rate-min,prod-rate-avg,prod-rate-std-dev,prod-rate-max,con-rate-min,con-rate-avg,con-rate-std-dev,con-rate-max,"

// csvRow is what --csv reads of a result file.
type csvRow struct {
	Topics            int       `json:"topics"`
	Partitions        int       `json:"partitions"`
	MessageSize       int64     `json:"messageSize"`
	ProducersPerTopic int       `json:"producersPerTopic"`
	ConsumersPerTopic int       `json:"consumersPerTopic"`
	PublishRate       []float64 `json:"publishRate"`
	ConsumeRate       []float64 `json:"consumeRate"`
}

// writeCSV writes a file with a line for each result file in a folder.
func writeCSV(p *dropin.Program, folder string, now func() time.Time) (int, error) {
	files, err := resultFiles(folder)
	if err != nil {
		return host.ExitFailed, err
	}
	var rows []csvRow
	for _, file := range files {
		data, err := place.ReadFile(file)
		if err != nil {
			return host.ExitFailed, err
		}
		var row csvRow
		if err := json.Unmarshal(data, &row); err != nil {
			return host.ExitFailed, &advice.Error{Err: fmt.Errorf("%s is not a result file: %w", file, err), Hint: "name a folder that has only result files"}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b csvRow) int {
		for _, d := range []int64{a.MessageSize - b.MessageSize, int64(a.Topics - b.Topics), int64(a.Partitions - b.Partitions)} {
			if d != 0 {
				return int(d)
			}
		}
		return 0
	})
	lines := []string{csvHeader}
	for i := range rows {
		lines = append(lines, rows[i].line())
	}
	name := fmt.Sprintf("results-%d.csv", now().Unix())
	if err := place.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return host.ExitFailed, err
	}
	(&logger{w: p.Out, now: now}).info("ResultsToCsv", "Results extracted into CSV %s", name)
	return host.ExitOK, nil
}

// resultFiles are the JSON files in a folder.
func resultFiles(folder string) (files []string, err error) {
	dir, err := place.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, &advice.Error{Err: fmt.Errorf("%s has no result files", folder), Hint: "name a folder with files that --output wrote"}
	}
	slices.Sort(files)
	return files, nil
}

func (r *csvRow) line() string {
	out := []string{strconv.Itoa(r.Topics), strconv.Itoa(r.Partitions), strconv.FormatInt(r.MessageSize, 10), strconv.Itoa(r.ProducersPerTopic), strconv.Itoa(r.ConsumersPerTopic)}
	for _, rates := range [][]float64{r.PublishRate, r.ConsumeRate} {
		out = append(out, spread(rates)...)
	}
	return strings.Join(out, ",")
}

// spread are the smallest, the mean, the standard deviation and the largest of some rates. The tool reads
// them from a histogram with one digit.
func spread(rates []float64) []string {
	if len(rates) == 0 {
		return []string{"0", "0", "0", "0"}
	}
	sum, squares := 0.0, 0.0
	for _, r := range rates {
		sum += r
	}
	mean := sum / float64(len(rates))
	for _, r := range rates {
		squares += (r - mean) * (r - mean)
	}
	whole := func(x float64) string { return strconv.FormatFloat(math.Round(x), 'f', 0, 64) }
	deviation := strconv.FormatFloat(math.Round(100*math.Sqrt(squares/float64(len(rates))))/100, 'f', -1, 64)
	return []string{whole(slices.Min(rates)), whole(mean), deviation, whole(slices.Max(rates))}
}
