package event_test

import (
	"testing"

	"github.com/ballast-lb/ballast/event"
)

const sampleLoad = `{"cpu":{"usage":33.33333333333333,"limit":400.0},"memory":{"usage":126.99187469482422,"limit":386.6875},` +
	`"directMemory":{"usage":16.0,"limit":256.0},"bandwidthIn":{"usage":1234.5678,"limit":3000000.0},` +
	`"bandwidthOut":{"usage":2345.6789,"limit":3000000.0},"msgThroughputIn":2.1738796288343E7,"msgThroughputOut":21693.73939263558,` +
	`"msgRateIn":39.97155108547828,"msgRateOut":39.88870395913389,"bundleCount":12,"topics":24,"maxResourceUsage":0.0625,` +
	`"weightedMaxEMA":0.32840957641601565,"msgThroughputEMA":43432.535680680,"updatedAt":1795995672233,"reportedAt":1795995667233}`

const sampleState = `{"state":"Releasing","dstBroker":"127.0.0.1:18082","sourceBroker":"127.0.0.1:18081","force":false,` +
	`"timestamp":1795994900275,"versionId":7}`

func BenchmarkDecodeBrokerLoadData(b *testing.B) {
	payload := []byte(sampleLoad)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	var d event.BrokerLoadData
	for b.Loop() {
		if err := d.UnmarshalJSON(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeServiceUnitStateData(b *testing.B) {
	payload := []byte(sampleState)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	var d event.ServiceUnitStateData
	for b.Loop() {
		if err := d.UnmarshalJSON(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeTopBundles(b *testing.B) {
	top := event.NewTopBundlesLoadData()
	for range 10 {
		top.TopBundlesLoadData = append(top.TopBundlesLoadData, event.BundleLoad{
			BundleName: "public/default/0x40000000_0x50000000",
			Stats:      event.NamespaceBundleStats{MsgRateIn: 39.97155108547828, MsgThroughputIn: 21738.79628834375, Topics: 3},
		})
	}
	payload, err := top.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if err := top.UnmarshalJSON(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeBrokerLoadData(b *testing.B) {
	d, err := event.Decode[event.BrokerLoadData]([]byte(sampleLoad))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}
