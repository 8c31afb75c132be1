package simulate

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Plot draws max/mean over time as text: width columns, each the worst sample of its stretch of time, and height rows from
// 1 up to the worst of all. The row of Even is marked.
func Plot(samples []Sample, width, height int) string {
	if len(samples) == 0 || width < 1 || height < 2 {
		return ""
	}
	columns := make([]float64, min(width, len(samples)))
	top := Even
	for i, s := range samples {
		c := i * len(columns) / len(samples)
		columns[c] = max(columns[c], s.MaxMean)
		top = max(top, s.MaxMean)
	}
	step := (top - 1) / float64(height-1)
	row := func(v float64) int { return int(math.Round((v - 1) / step)) }
	var b strings.Builder
	for r := height - 1; r >= 0; r-- {
		fmt.Fprintf(&b, "%6.2f |", 1+float64(float64(r)*step))
		line := make([]byte, len(columns))
		for c, v := range columns {
			switch {
			case row(v) == r:
				line[c] = '*'
			case row(Even) == r:
				line[c] = '.'
			default:
				line[c] = ' '
			}
		}
		b.WriteString(strings.TrimRight(string(line), " "))
		b.WriteByte('\n')
	}
	span := time.Duration(samples[len(samples)-1].At-samples[0].At) * time.Millisecond
	fmt.Fprintf(&b, "       +%s\n        0%*s\n", strings.Repeat("-", len(columns)), max(len(columns)-1, 1), clock(span))
	return b.String()
}
