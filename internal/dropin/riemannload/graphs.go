package riemannload

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"path/filepath"

	"carronade/internal/report/picture"
	"carronade/internal/verdict/stats"
)

// The graphs have the size of the tool's, and their text has the size of gnuplot's.
var graphPixels = image.Pt(1600, 400)

const graphScale = 1.25 // pixels per unit of a picture

// riemannCurves are the columns of the graphs, for the whole seconds of sending.
type riemannCurves struct {
	time                           []float64
	acks, rtt, throughput, unacked []float64
}

func (c *riemannCurves) add(m *riemannMetrics) {
	c.time = append(c.time, float64(m.second()))
	c.acks = append(c.acks, m.acks.mean())
	c.rtt = append(c.rtt, m.rtt.shown().Mean().Seconds())
	c.throughput = append(c.throughput, m.bytes.mean())
	c.unacked = append(c.unacked, float64(m.unacked))
}

// drawRiemann writes the four graphs and the page that shows them, with the columns and
// titles that the tool's scripts gave to gnuplot.
func drawRiemann(dir string, c riemannCurves) error {
	if len(c.time) == 0 {
		return nil
	}
	var errs []error
	for _, f := range riemannFigures(c) {
		errs = append(errs, writeBuffered(filepath.Join(dir, f.Name+".png"), func(w *bufio.Writer) error {
			return f.PNGOf(w, picture.Light, graphScale, graphPixels)
		}))
	}
	errs = append(errs, writeBuffered(filepath.Join(dir, "plots.html"), func(w *bufio.Writer) error {
		_, err := w.WriteString(riemannPlots)
		return err
	}))
	return errors.Join(errs...)
}

func riemannFigures(c riemannCurves) []picture.Figure {
	line := func(name, title, label string, unit picture.Unit, y []float64) picture.Figure {
		return picture.Figure{
			Name: name, Title: title,
			X:      picture.Axis{Label: "Time (sec)", Unit: picture.Seconds},
			Y:      picture.Axis{Label: label, Unit: unit, Zero: true},
			Series: []picture.Series{{X: c.time, Y: y}},
		}
	}
	unacked := line("unacked", "Un-Acked Messages", "Messages", picture.Events, c.unacked)
	if fit, ok := stats.FitLine(len(c.time), func(i int) (x, y float64) { return c.time[i], c.unacked[i] }); ok {
		first, last := c.time[0], c.time[len(c.time)-1]
		unacked.Series[0].Name = "unacked.csv"
		unacked.Series = append(unacked.Series, picture.Series{
			Name: fmt.Sprintf("fit: %s a second", picture.Signed(fit.Slope)), Tone: picture.Orange, Dash: picture.Dashed,
			X: []float64{first, last}, Y: []float64{fit.Slope*first + fit.Intercept, fit.Slope*last + fit.Intercept},
		})
	}
	return []picture.Figure{
		line("acks", "Mean Ack Rate", "Average (acks/sec)", picture.PerSecond, c.acks),
		line("rtt", "RTT", "Average RTT (sec)", picture.Seconds, c.rtt),
		line("throughput", "Throughput", "Average Throughput (bytes/sec)", picture.BytesPerS, c.throughput),
		unacked,
	}
}

const riemannPlots = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>riemann-load</title></head>
<body>
<img src="acks.png" alt="Mean Ack Rate">
<img src="rtt.png" alt="RTT">
<img src="throughput.png" alt="Throughput">
<img src="unacked.png" alt="Un-Acked Messages">
</body>
</html>
`
