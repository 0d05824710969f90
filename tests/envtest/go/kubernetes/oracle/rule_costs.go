package main

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type ruleCost struct {
	Path  string `json:"path"`
	Rule  string `json:"rule"`
	Cost  uint64 `json:"cost"`
	Error string `json:"error,omitempty"`
}

type costs struct {
	Limit      uint64     `json:"limit"`
	TotalLimit uint64     `json:"totalLimit"`
	Rules      []ruleCost `json:"rules"`
}

// ruleCosts estimates every rule of every version, as the API server does when a CRD is written.
func ruleCosts(input []byte) (any, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(input, &crd); err != nil {
		return nil, err
	}
	out := costs{
		Limit:      validation.StaticEstimatedCostLimit,
		TotalLimit: validation.StaticEstimatedCRDCostLimit,
		Rules:      []ruleCost{},
	}
	for _, version := range crd.Spec.Versions {
		var schema apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &schema, nil); err != nil {
			return nil, err
		}
		if err := out.walk(version.Name, &schema, validation.RootCELContext(&schema)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *costs) walk(path string, schema *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext) error {
	if len(schema.XValidations) > 0 {
		info, err := context.TypeInfo()
		if err != nil || info == nil {
			return fmt.Errorf("%s: no type: %v", path, err)
		}
		results, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit,
			environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for i, result := range results {
			rule := ruleCost{Path: path, Rule: schema.XValidations[i].Rule}
			if result.Error != nil {
				rule.Error = result.Error.Error()
			}
			times := result.MaxCardinality
			if context.MaxCardinality != nil {
				times = *context.MaxCardinality
			}
			rule.Cost = multiply(result.MaxCost, times)
			c.Rules = append(c.Rules, rule)
		}
	}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		child := schema.Properties[name]
		if err := c.walk(path+"."+name, &child, context.ChildPropertyContext(&child, name)); err != nil {
			return err
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		if err := c.walk(path+"[]", schema.Items.Schema, context.ChildItemsContext(schema.Items.Schema)); err != nil {
			return err
		}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		child := schema.AdditionalProperties.Schema
		return c.walk(path+"[*]", child, context.ChildAdditionalPropertiesContext(child))
	}
	return nil
}

func multiply(cost, times uint64) uint64 {
	if times != 0 && cost > math.MaxUint64/times {
		return math.MaxUint64
	}
	return cost * times
}
