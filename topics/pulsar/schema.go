package pulsar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/hamba/avro/v2"

	"github.com/ballast-lb/ballast/topics"
)

// exactSchema declares a schema as it is written. The library's own JSONSchema would rewrite the definition, and the broker
// would keep the rewritten text as a new version for ever. Payloads are encoded before they come here.
type exactSchema struct{ info *client.SchemaInfo }

var errNoCodec = errors.New("payloads are encoded and decoded elsewhere")

func (s exactSchema) Encode(any) ([]byte, error)        { return nil, errNoCodec }
func (s exactSchema) Decode([]byte, any) error          { return errNoCodec }
func (s exactSchema) Validate([]byte) error             { return errNoCodec }
func (s exactSchema) GetSchemaInfo() *client.SchemaInfo { return s.info }

// declare is the schema to publish with: nil for none, the wanted definition where a topic has no schema yet, and else the
// registered text itself if it means the same as the wanted one or an alternative. So no version is ever added to a topic
// that has one.
func declare(ctx context.Context, n topics.Name, o topics.PublishOptions, lookup func(context.Context, topics.Name) (*registered, error)) (client.Schema, error) {
	want := o.Schema
	if want.Definition == "" {
		return nil, nil
	}
	if !json.Valid([]byte(want.Definition)) {
		return nil, fmt.Errorf("publish to %s: the schema is no JSON: %s", n, want.Definition)
	}
	reg, err := lookup(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("compare the schema of %s: %w", n, err)
	}
	if reg == nil {
		return exactSchema{&client.SchemaInfo{Name: want.Name, Schema: want.Definition, Type: client.JSON, Properties: want.Properties}}, nil
	}
	why := differ(want.Definition, reg)
	for _, other := range o.Alternatives {
		if why != "" && differ(other.Definition, reg) == "" {
			want, why = other, ""
		}
	}
	if why != "" {
		return nil, fmt.Errorf("publish to %s: %w: %s: registered (version %d, %s) %s, would publish with (JSON) %s",
			n, topics.ErrSchemaMismatch, why, reg.Version, reg.Type, reg.Data, want.Definition)
	}
	return exactSchema{&client.SchemaInfo{Name: want.Name, Schema: reg.Data, Type: client.JSON, Properties: reg.Properties}}, nil
}

// differ says why a registered schema does not mean the same as a definition, "" if it does. Avro's canonical form
// decides: it leaves out defaults and documentation, which do not change what is on the wire.
func differ(definition string, reg *registered) string {
	if reg.Type != "JSON" {
		return "it is not of type JSON"
	}
	if reg.Data == definition {
		return ""
	}
	ours, err := canonical(definition)
	if err != nil {
		return fmt.Sprintf("ours is not readable: %v", err)
	}
	theirs, err := canonical(reg.Data)
	if err != nil {
		return fmt.Sprintf("theirs is not readable: %v", err)
	}
	if ours != theirs {
		return "the definitions differ"
	}
	return ""
}

// canonical is the fingerprint of a definition's parsing canonical form. Every definition is parsed with a cache of its
// own, as both define the same names.
func canonical(definition string) ([32]byte, error) {
	s, err := avro.ParseWithCache(definition, "", &avro.SchemaCache{})
	if err != nil {
		return [32]byte{}, err
	}
	return s.Fingerprint(), nil
}
