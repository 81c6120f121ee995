"""The words everybody shares: metrics, entities, blocks, frames, clock, settings, errors. No I/O."""
