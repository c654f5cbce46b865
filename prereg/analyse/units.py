"""Which two units of a channel make up a configuration."""

from __future__ import annotations

from prereg.model.study import Channel, Configuration, Protocol, Unit


def units_of(protocol: Protocol, configuration: Configuration, channel: Channel) -> tuple[str, str]:
    """Ids of the reference and the test unit of a configuration in its stage of that channel.

    Raises StopIteration if it is in none: the study files were checked before.
    """
    stage = next(s for s in protocol.stages if s.channel == channel and configuration.id in s.configurations)
    off, on = (
        Unit(stage=stage.id, configuration=configuration.id, arm=arm.id).id
        for arm in (protocol.reference_arm, protocol.test_arm)
    )
    return off, on
