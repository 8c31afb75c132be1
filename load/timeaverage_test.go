package load

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/event"
)

func sample(x float64) *event.NamespaceBundleStats {
	return &event.NamespaceBundleStats{MsgRateIn: x, MsgRateOut: 2 * x, MsgThroughputIn: 3 * x, MsgThroughputOut: 4 * x}
}

// TestUpdateTimeAverage holds the numbers that Pulsar 4.2.4 gave for three samples at most.
func TestUpdateTimeAverage(t *testing.T) {
	avg := NewTimeAverage(3, DefaultStats())
	for i, want := range []float64{10, 15, 20, 26.666666666666668, 34.44444444444445} {
		UpdateTimeAverage(&avg, sample(float64(10*(i+1))))
		if avg.MsgRateIn != want || avg.NumSamples != min(int32(i+1), 3) {
			t.Errorf("sample %d: %v of %d samples, want %v", i, avg.MsgRateIn, avg.NumSamples, want)
		}
	}
}

func TestUpdateTimeAverageWithoutSamples(t *testing.T) {
	avg := NewTimeAverage(0, DefaultStats())
	UpdateTimeAverage(&avg, &event.NamespaceBundleStats{MsgRateIn: 60, MsgRateOut: 50})
	if !math.IsInf(avg.MsgRateIn, 1) || !math.IsNaN(avg.MsgRateOut) {
		t.Errorf("0 samples: %v, %v", avg.MsgRateIn, avg.MsgRateOut)
	}
}

// TestFirstSampleReplacesDefaults holds that a bundle counts for 50 msg/s and 50,000 bytes/s each way until it is known.
func TestFirstSampleReplacesDefaults(t *testing.T) {
	d := NewBundleData(ShortSamples, LongSamples, DefaultStats())
	if d.ShortTermData.TotalMsgRate() != 100 || d.LongTermData.TotalMsgThroughput() != 100000 {
		t.Errorf("unseen: %+v", d)
	}
	s := event.NamespaceBundleStats{MsgRateIn: 7, Topics: 1<<32 + 5}
	UpdateBundleData(&d, &s)
	want := event.BundleData{
		ShortTermData: event.TimeAverageMessageData{MaxSamples: 10, NumSamples: 1, MsgRateIn: 7},
		LongTermData:  event.TimeAverageMessageData{MaxSamples: 1000, NumSamples: 1, MsgRateIn: 7},
		Topics:        5, // cut to 32 bits
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

func TestBundleDataFromQuota(t *testing.T) {
	d := BundleDataFromQuota(event.ResourceQuota{MsgRateIn: 1, MsgRateOut: 2, BandwidthIn: 3, BandwidthOut: 4, Memory: 5})
	want := event.TimeAverageMessageData{MaxSamples: 10, NumSamples: 10, MsgRateIn: 1, MsgRateOut: 2, MsgThroughputIn: 3, MsgThroughputOut: 4}
	if diff := cmp.Diff(want, d.ShortTermData); diff != "" {
		t.Error(diff)
	}
	want.MaxSamples, want.NumSamples = 1000, 1000
	if diff := cmp.Diff(want, d.LongTermData); diff != "" {
		t.Error(diff)
	}
}

func TestAddBundleData(t *testing.T) {
	known := NewBundleData(ShortSamples, LongSamples, *sample(1))
	known.LongTermData.MsgRateIn = 10
	defaults := DefaultStats()
	var sum event.TimeAverageBrokerData
	AddBundleData(&sum, &known, &defaults)
	AddBundleData(&sum, nil, &defaults)
	want := event.TimeAverageBrokerData{
		ShortTermMsgRateIn: 51, ShortTermMsgRateOut: 52, ShortTermMsgThroughputIn: 50003, ShortTermMsgThroughputOut: 50004,
		LongTermMsgRateIn: 60, LongTermMsgRateOut: 52, LongTermMsgThroughputIn: 50003, LongTermMsgThroughputOut: 50004,
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
}

// TestAverageStaysBetween holds that an average of finite samples lies between the least and the greatest, and that it is
// the mean while there are fewer samples than it holds.
func TestAverageStaysBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 30).Draw(t, "samples")
		avg := NewTimeAverage(rapid.Int32Range(1, 40).Draw(t, "max"), *sample(12345))
		least, most, sum := math.Inf(1), math.Inf(-1), 0.0
		for _, x := range samples {
			UpdateTimeAverage(&avg, &event.NamespaceBundleStats{MsgRateIn: x})
			least, most, sum = min(least, x), max(most, x), sum+x
		}
		if slack := 1e-6 * (1 + most); avg.MsgRateIn < least-slack || avg.MsgRateIn > most+slack {
			t.Fatalf("%v is not between %v and %v", avg.MsgRateIn, least, most)
		}
		if n := len(samples); n <= int(avg.MaxSamples) {
			if mean := sum / float64(n); math.Abs(mean-avg.MsgRateIn) > 1e-9*(1+mean) {
				t.Fatalf("%v is not the mean %v of %d samples", avg.MsgRateIn, mean, n)
			}
		}
	})
}
