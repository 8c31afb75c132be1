package pulsar

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/topics"
)

func TestDeclare(t *testing.T) {
	n, err := topics.ParseName(topics.ServiceUnitState)
	if err != nil {
		t.Fatal(err)
	}
	known := event.SchemasOf("ServiceUnitStateData")
	if len(known) < 2 {
		t.Fatalf("%d definitions of ServiceUnitStateData, want the present one and an older one", len(known))
	}
	now, old := known[0].Definition, known[1].Definition
	spaced := strings.ReplaceAll(now, ",", " ,\n ")
	withDefault := strings.Replace(now, `{"name":"force","type":"boolean"}`, `{"name":"force","type":"boolean","default":false,"doc":"x"}`, 1)
	lookup := func(r *registered, err error) func(context.Context, topics.Name) (*registered, error) {
		return func(context.Context, topics.Name) (*registered, error) { return r, err }
	}
	properties := map[string]string{"__alwaysAllowNull": "true"}
	for name, test := range map[string]struct {
		options  topics.PublishOptions
		reg      *registered
		want     string // the definition that is declared; "" = none
		mismatch string // what the refusal says
	}{
		"none wanted":            {reg: &registered{Type: "JSON", Data: now}},
		"none registered":        {options: schemas(now), want: now},
		"the same":               {options: schemas(now), reg: &registered{Type: "JSON", Data: now, Properties: properties}, want: now},
		"the same, differently":  {options: schemas(now), reg: &registered{Type: "JSON", Data: spaced, Properties: properties}, want: spaced},
		"with a default":         {options: schemas(now), reg: &registered{Type: "JSON", Data: withDefault, Properties: properties}, want: withDefault},
		"an alternative":         {options: schemas(now, old), reg: &registered{Type: "JSON", Data: old, Properties: properties}, want: old},
		"an older one":           {options: schemas(now), reg: &registered{Type: "JSON", Data: old}, mismatch: "the definitions differ"},
		"a newer one":            {options: schemas(old), reg: &registered{Type: "JSON", Data: now}, mismatch: "the definitions differ"},
		"of another type":        {options: schemas(now), reg: &registered{Type: "AVRO", Data: now}, mismatch: "not of type JSON"},
		"registered unreadable":  {options: schemas(now), reg: &registered{Type: "JSON", Data: `{"type":"recording"}`}, mismatch: "theirs is not readable"},
		"ours unreadable":        {options: schemas(`{"type":"recording"}`), reg: &registered{Type: "JSON", Data: now}, mismatch: "ours is not readable"},
		"ours unreadable, first": {options: schemas(`{"type":"recording"}`), want: `{"type":"recording"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := declare(t.Context(), n, test.options, lookup(test.reg, nil))
			if test.mismatch != "" {
				if !errors.Is(err, topics.ErrSchemaMismatch) {
					t.Fatalf("error %v, want ErrSchemaMismatch", err)
				}
				for _, part := range []string{test.mismatch, test.reg.Data, test.options.Schema.Definition, n.String()} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the error does not name %q: %v", part, err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s == nil {
				if test.want != "" {
					t.Fatal("no schema")
				}
				return
			}
			info := s.GetSchemaInfo()
			if info.Schema != test.want || info.Name != "" {
				t.Errorf("declares %q %s, want %s", info.Name, info.Schema, test.want)
			}
			if test.reg != nil && info.Properties["__alwaysAllowNull"] != "true" {
				t.Errorf("declares the properties %v, want the registered ones", info.Properties)
			}
		})
	}
	down := errors.New("down")
	if _, err := declare(t.Context(), n, schemas(now), lookup(nil, down)); !errors.Is(err, down) {
		t.Errorf("when the registry cannot be asked: %v", err)
	}
	if _, err := declare(t.Context(), n, schemas("no JSON"), lookup(nil, nil)); err == nil {
		t.Error("a schema that is no JSON was declared")
	}
}

func schemas(definition string, others ...string) topics.PublishOptions {
	o := topics.PublishOptions{Schema: topics.Schema{Definition: definition}}
	for _, d := range others {
		o.Alternatives = append(o.Alternatives, topics.Schema{Definition: d})
	}
	return o
}

// TestKnownSchemasAreReadable: every definition of the brokers has a canonical form, and no two have the same.
func TestKnownSchemasAreReadable(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, class := range []string{"BrokerLoadData", "TopBundlesLoadData", "ServiceUnitStateData", "BrokerLookupData"} {
		for _, s := range event.SchemasOf(class) {
			form, err := canonical(s.Definition)
			if err != nil {
				t.Errorf("%s of %v: %v", class, s.Seen, err)
			}
			if other, ok := seen[form]; ok {
				t.Errorf("%s of %v is the same as %s", class, s.Seen, other)
			}
			seen[form] = class
		}
	}
}
