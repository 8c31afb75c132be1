// Package monitor renders load data as the tables that operators know from pulsar-perf monitor-brokers (Pulsar:
// BrokerMonitor), with its mislabelled cells put right. It is pure: values in, text out.
package monitor

import (
	"fmt"
	"strings"
)

const (
	localWidth       = 14
	globalFirstWidth = 60
	globalWidth      = 12
)

// table lays cells out as BrokerMonitor does: every cell cut to its column's width, padded by spaces to width + 1, joined
// by "|", lines between "||", a border above and below.
func table(rows [][]any, widths []int, border byte) string {
	var b strings.Builder
	length := 2*len(widths) - 1 + 4
	for _, w := range widths {
		length += w
	}
	line := strings.Repeat(string(border), length)
	b.WriteString(line)
	b.WriteByte('\n')
	for _, row := range rows {
		b.WriteString("||")
		for i, w := range widths {
			if i > 0 {
				b.WriteByte('|')
			}
			text := ""
			if i < len(row) {
				text = cell(row[i])
			}
			if len(text) > w {
				text = text[:w]
			}
			b.WriteString(text)
			b.WriteString(strings.Repeat(" ", w+1-len(text)))
		}
		b.WriteString("||\n")
	}
	b.WriteString(line)
	return b.String()
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return fmt.Sprintf("%.2f", v)
	case float32:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprint(v)
	}
}

func local(rows [][]any) string {
	widths := make([]int, 7)
	for i := range widths {
		widths[i] = localWidth
	}
	return table(rows, widths, '=')
}
