package monitor

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/ballast-lb/ballast/internal/jsonfloat"
)

// WriteBrokers writes brokers as a table. A cell is blank where a figure is not known.
func WriteBrokers(w io.Writer, list []Broker) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "BROKER\tLEADS\tMANAGER\tCPU %\tMEMORY %\tDIRECT %\tBW IN %\tBW OUT %\tMAX %\tBUNDLES\tTOPICS\tMSG/S IN\tMSG/S OUT\tKB/S IN\tKB/S OUT\t"+
		"SHORT MSG/S\tSHORT KB/S\tLONG MSG/S\tLONG KB/S\tAGE")
	for i := range list {
		b := &list[i]
		leads, u := "", b.Usage
		if b.Leads {
			leads = "*"
		}
		if u == nil {
			u = new(Usage)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.ID, leads, b.Manager,
			decimal(u.CPU), decimal(u.Memory), decimal(u.DirectMemory), decimal(u.BandwidthIn), decimal(u.BandwidthOut), decimal(u.Max),
			count(b.Bundles), count(b.Topics), four(b.Now), two(b.Short), two(b.Long), age(b))
	}
	return t.Flush()
}

// WriteBundles writes bundles as a table. A cell is blank where a figure is not known.
func WriteBundles(w io.Writer, list []Bundle) error {
	states := false
	for i := range list {
		states = states || list[i].State != ""
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	header := "BUNDLE\tOWNER\t"
	if states {
		header += "STATE\t"
	}
	fmt.Fprintln(t, header+"TOPICS\tPRODUCERS\tCONSUMERS\tMSG/S IN\tMSG/S OUT\tKB/S IN\tKB/S OUT\tSHORT MSG/S\tSHORT KB/S\tLONG MSG/S\tLONG KB/S")
	for i := range list {
		b := &list[i]
		state := ""
		if states {
			state = b.State + "\t"
		}
		fmt.Fprintf(t, "%s\t%s\t%s%s\t%s\t%s\t%s\t%s\t%s\n", b.Name, b.Owner, state, count(b.Topics), count(b.Producers), count(b.Consumers),
			four(b.Now), two(b.Short), two(b.Long))
	}
	return t.Flush()
}

func decimal(v *jsonfloat.Float) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(*v))
}

func count[T ~int32 | ~int64](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// four are the cells of rates in, out, and throughput in, out.
func four(r *Rates) string {
	if r == nil {
		return "\t\t\t"
	}
	return fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f", float64(r.MsgRateIn), float64(r.MsgRateOut), float64(r.MsgThroughputIn)/1024, float64(r.MsgThroughputOut)/1024)
}

// two are the cells of an average: messages and kilobytes, in and out together.
func two(a *Average) string {
	if a == nil {
		return "\t"
	}
	return fmt.Sprintf("%.2f\t%.2f", float64(a.MsgRateIn+a.MsgRateOut), float64(a.MsgThroughputIn+a.MsgThroughputOut)/1024)
}

func age(b *Broker) string {
	switch {
	case b.Estimated:
		return "estimated"
	case b.Age == nil:
		return ""
	}
	return (time.Duration(*b.Age) * time.Millisecond).Round(time.Second).String()
}
