package monitor

import (
	"math"

	"github.com/ballast-lb/ballast/event"
)

var (
	systemHeader  = []any{"SYSTEM", "CPU %", "MEMORY %", "DIRECT %", "BW IN %", "BW OUT %", "MAX %"}
	countHeader   = []any{"COUNT", "TOPIC", "BUNDLE", "PRODUCER", "CONSUMER", "BUNDLE +", "BUNDLE -"}
	messageHeader = []any{"LATEST", "MSG/S IN", "MSG/S OUT", "TOTAL", "KB/S IN", "KB/S OUT", "TOTAL"}
)

// Extensible is the table of an Extensible broker: usage, bundle and topic counts, latest rates. The broker's event has no
// producer and consumer counts and no history, so those cells and rows are left out. Topics are shown; the reference tool
// leaves that cell empty although the event carries them.
func Extensible(broker string, d event.BrokerLoadData) string {
	return "Broker Data for " + broker + ":\n" + local([][]any{
		systemHeader, system(d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut, d.MaxResourceUsage*100),
		countHeader, {nil, d.Topics, d.BundleCount},
		messageHeader, messages(d.MsgRateIn, d.MsgRateOut, d.MsgThroughputIn, d.MsgThroughputOut),
	})
}

// Modular is the table of a Modular broker: its report and the short and long averages of its bundles, whose cells are blank
// when avg is nil.
func Modular(broker string, d event.LocalBrokerData, avg *event.TimeAverageBrokerData) string {
	short, long := []any(nil), []any(nil)
	if avg != nil {
		short = messages(avg.ShortTermMsgRateIn, avg.ShortTermMsgRateOut, avg.ShortTermMsgThroughputIn, avg.ShortTermMsgThroughputOut)
		long = messages(avg.LongTermMsgRateIn, avg.LongTermMsgRateOut, avg.LongTermMsgThroughputIn, avg.LongTermMsgThroughputOut)
	}
	return "Broker Data for " + broker + ":\n" + local([][]any{
		systemHeader, system(d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut, d.MaxResourceUsage()*100),
		countHeader, {nil, d.NumTopics, d.NumBundles, d.NumProducers, d.NumConsumers, len(d.LastBundleGains), len(d.LastBundleLosses)},
		messageHeader, messages(d.MsgRateIn, d.MsgRateOut, d.MsgThroughputIn, d.MsgThroughputOut),
		titled("SHORT", messageHeader), short,
		titled("LONG", messageHeader), long,
	})
}

// Simple is the table of a Simple broker: raw and allocated usage and traffic. The KB/S cells of RAW MSG are kilobytes per
// second from the bundles' throughput; the reference tool shows kbit/1024 there.
func Simple(broker string, d event.LoadReport) string {
	var use event.SystemResourceUsage
	if d.SystemResourceUsage != nil {
		use = *d.SystemResourceUsage
	}
	var topics, consumers, producers int64
	var rateIn, rateOut, bytesIn, bytesOut float64
	for _, b := range d.BundleStats {
		topics += b.Stats.Topics
		consumers += int64(b.Stats.ConsumerCount)
		producers += int64(b.Stats.ProducerCount)
		rateIn += b.Stats.MsgRateIn
		rateOut += b.Stats.MsgRateOut
		bytesIn += b.Stats.MsgThroughputIn
		bytesOut += b.Stats.MsgThroughputOut
	}
	cpu, memory := allocated(d.AllocatedCPU, use.CPU.Limit), allocated(d.AllocatedMemory, use.Memory.Limit)
	in, out := allocated(d.AllocatedBandwidthIn, use.BandwidthIn.Limit), allocated(d.AllocatedBandwidthOut, use.BandwidthOut.Limit)
	return "Load Report for " + broker + ":\n" + local([][]any{
		countHeader, {nil, topics, len(d.BundleStats), producers, consumers, len(d.BundleGains), len(d.BundleLosses)},
		titled("RAW SYSTEM", systemHeader), system(use.CPU, use.Memory, use.DirectMemory, use.BandwidthIn, use.BandwidthOut, maxPercent(use)),
		titled("ALLOC SYSTEM", systemHeader), {nil, cpu, memory, nil, in, out, max(cpu, memory, in, out)},
		titled("RAW MSG", messageHeader), messages(rateIn, rateOut, bytesIn, bytesOut),
		titled("ALLOC MSG", messageHeader), messages(d.AllocatedMsgRateIn, d.AllocatedMsgRateOut, d.AllocatedBandwidthIn, d.AllocatedBandwidthOut),
	})
}

// Row is one broker of the overall table. LongMsgRate is NaN where the load manager keeps no long-term average.
type Row struct {
	Broker      string
	Bundles     int64
	MsgRate     float64 // msg/s in + out
	LongMsgRate float64 // msg/s in + out, long-term average
	Throughput  float64 // bytes/s in + out
	MaxUsage    float64 // fraction
}

// ExtensibleRow is an Extensible broker's line. Its events have no long-term average.
func ExtensibleRow(broker string, d event.BrokerLoadData) Row {
	return Row{Broker: broker, Bundles: d.BundleCount, MsgRate: d.MsgRateIn + d.MsgRateOut, LongMsgRate: math.NaN(),
		Throughput: d.MsgThroughputIn + d.MsgThroughputOut, MaxUsage: d.MaxResourceUsage}
}

// ModularRow is a Modular broker's line; without averages its long-term rate is blank.
func ModularRow(broker string, d event.LocalBrokerData, avg *event.TimeAverageBrokerData) Row {
	long := math.NaN()
	if avg != nil {
		long = avg.LongTermMsgRateIn + avg.LongTermMsgRateOut
	}
	return Row{Broker: broker, Bundles: int64(d.NumBundles), MsgRate: d.MsgRateIn + d.MsgRateOut, LongMsgRate: long,
		Throughput: d.MsgThroughputIn + d.MsgThroughputOut, MaxUsage: d.MaxResourceUsage()}
}

// SimpleRow is a Simple broker's line: what its bundles are allocated stands for the long-term rate, and its throughput is
// that of its bundles. The reference tool shows the allocated bandwidth there.
func SimpleRow(broker string, d event.LoadReport) Row {
	r := Row{Broker: broker, Bundles: int64(d.NumBundles()), MsgRate: d.MsgRateIn() + d.MsgRateOut(), LongMsgRate: d.AllocatedMsgRateIn + d.AllocatedMsgRateOut}
	for i := range d.BundleStats {
		r.Throughput += d.BundleStats[i].Stats.MsgThroughputIn + d.BundleStats[i].Stats.MsgThroughputOut
	}
	if d.SystemResourceUsage != nil {
		r.MaxUsage = maxPercent(*d.SystemResourceUsage) / 100
	}
	return r
}

// Overall is the table of all brokers with a TOTAL row. Cells stand under their own headers and MAX % is in percent; the
// reference tool exchanges KB/S and LONG/S in the brokers' rows and shows MAX % as a fraction.
func Overall(rows []Row) string {
	widths := []int{globalFirstWidth, globalWidth, globalWidth, globalWidth, globalWidth, globalWidth}
	out := [][]any{{"BROKER", "BUNDLE", "MSG/S", "LONG/S", "KB/S", "MAX %"}}
	total := Row{Broker: "TOTAL"}
	for _, r := range rows {
		out = append(out, overallRow(r))
		total.Bundles += r.Bundles
		total.MsgRate += r.MsgRate
		total.LongMsgRate += r.LongMsgRate
		total.Throughput += r.Throughput
		total.MaxUsage = math.Max(total.MaxUsage, r.MaxUsage)
	}
	return "Overall Broker Data:\n" + table(append(out, overallRow(total)), widths, '*')
}

func overallRow(r Row) []any {
	var long any = r.LongMsgRate
	if math.IsNaN(r.LongMsgRate) {
		long = nil
	}
	return []any{r.Broker, r.Bundles, r.MsgRate, long, r.Throughput / 1024, r.MaxUsage * 100}
}

func titled(title string, header []any) []any {
	return append([]any{title}, header[1:]...)
}

func system(cpu, memory, direct, in, out event.ResourceUsage, maxPercent float64) []any {
	return []any{nil, cpu.PercentUsage(), memory.PercentUsage(), direct.PercentUsage(), in.PercentUsage(), out.PercentUsage(), maxPercent}
}

func messages(rateIn, rateOut, bytesIn, bytesOut float64) []any {
	return []any{nil, rateIn, rateOut, rateIn + rateOut, bytesIn / 1024, bytesOut / 1024, (bytesIn + bytesOut) / 1024}
}

func maxPercent(u event.SystemResourceUsage) float64 {
	most := float32(0)
	for _, r := range []event.ResourceUsage{u.CPU, u.Memory, u.DirectMemory, u.BandwidthIn, u.BandwidthOut} {
		if p := r.PercentUsage(); p > most {
			most = p
		}
	}
	return float64(most)
}

// allocated is the allocated share of a limit in percent, at most 100; 0 when either is unknown.
func allocated(value, limit float64) float64 {
	if !(limit > 0) || !(value >= 0) {
		return 0
	}
	return 100 * math.Min(1, value/limit)
}
